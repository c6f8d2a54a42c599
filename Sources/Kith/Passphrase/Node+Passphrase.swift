internal import KithCore
internal import KithCrypto
internal import KithStorage

extension Node {
  /// Whether the secrets of a device's directory are under a passphrase.
  ///
  /// - Throws: ``KithError`` with `missing` if there is no device, `unsafePermissions` or another
  ///   storage code.
  package static func isUnderPassphrase(directory: String) throws(KithError) -> Bool {
    try KithError.mapping(DeviceDirectory.isUnderPassphrase(directory))
  }

  /// Changes or removes (nil) the passphrase of a device's secrets. No process may have the
  /// directory open. It blocks while the passphrases are stretched.
  ///
  /// The secrets stay: an earlier reader of the plain file still has them
  /// (`Docs/Decisions/passphrase.md`).
  ///
  /// - Throws: ``KithError`` with `passphrase` if the old one is wrong, `inUse`, `missing` or a
  ///   storage code; then nothing has changed.
  package static func changePassphrase(
    directory: String, from old: PassphraseQuestion?, to new: Passphrase?
  ) throws(KithError) {
    let known = try isUnderPassphrase(directory: directory) ? try old?() : nil
    try KithError.mapping(DeviceDirectory.changePassphrase(at: directory, from: known, to: new))
  }
}
