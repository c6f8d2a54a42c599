internal import KithCore
public import KithCrypto
internal import KithStorage

extension Node {
  /// Whether the secrets of a device's directory are under a passphrase.
  ///
  /// - Throws: ``KithError`` with `missing` where there is no device, `unsafePermissions` or another
  ///   storage code.
  public static func isUnderPassphrase(directory: String) throws(KithError) -> Bool {
    try Storage.isUnderPassphrase(directory)
  }

  /// Puts the secrets of a device's directory under another passphrase, or takes them out from under
  /// one. Nobody may have the directory open. It blocks while the passphrases are stretched.
  ///
  /// The secrets themselves stay: who once read them in the open still has them
  /// (`Docs/Decisions/passphrase.md`).
  ///
  /// - Parameters:
  ///   - directory: The device's directory.
  ///   - old: Asks for the passphrase that they are under; not asked where they are under none.
  ///   - new: The passphrase that they shall be under; nil: none.
  /// - Throws: ``KithError`` with `passphrase` where the old one is wrong, `inUse`, `missing` or a
  ///   storage code: nothing has changed then.
  public static func changePassphrase(
    directory: String, from old: PassphraseQuestion?, to new: Passphrase?
  ) throws(KithError) {
    let known = try Storage.isUnderPassphrase(directory) ? try old?() : nil
    do throws(StorageError) {
      try DeviceDirectory.changePassphrase(at: directory, from: known, to: new)
    } catch {
      throw KithError(error)
    }
  }
}
