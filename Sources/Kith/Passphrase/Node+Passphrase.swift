internal import KithCore
internal import KithCrypto
package import KithStorage

extension Node {
  /// Whether the secrets of a device's directory are under a passphrase.
  ///
  /// - Throws: ``KithError`` with `missing` if there is no device, `unsafePermissions` or another
  ///   storage code.
  package static func isUnderPassphrase(directory: String) throws(KithError) -> Bool {
    try KithError.mapping(DeviceDirectory.isUnderPassphrase(directory))
  }

  /// Makes a new database of what can be read of a damaged one; `confirm` is asked first. Nil: the
  /// database is sound, or `confirm` said no. No process may have the directory open.
  ///
  /// - Throws: ``KithError`` with `damaged` if nothing can be read, `passphrase`, `inUse`, `missing` or
  ///   a storage code.
  package static func repair(
    directory: String, passphrase: PassphraseQuestion?, confirm: (RebuiltDatabase) -> Bool
  ) throws(KithError) -> RebuiltDatabase? {
    let known = try isUnderPassphrase(directory: directory) ? try passphrase?() : nil
    return try KithError.mapping(
      DeviceDirectory.repair(directory, passphrase: known, confirm: confirm))
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
