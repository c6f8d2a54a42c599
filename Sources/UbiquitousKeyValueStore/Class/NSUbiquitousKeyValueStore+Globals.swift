#if !canImport(Darwin)
  public import Foundation

  /// The key of `userInfo` for the reason of a notification, an `NSNumber`.
  public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"

  /// The key of `userInfo` for the changed keys, a `[String]`.
  public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"

  /// The reason for a write of another device.
  public let NSUbiquitousKeyValueStoreServerChange = 0

  /// Signing in brought the account's data: keys that were written before may have lost.
  public let NSUbiquitousKeyValueStoreInitialSyncChange = 1

  /// The reason for an exceeded quota: writes of these keys were refused or are hidden.
  public let NSUbiquitousKeyValueStoreQuotaViolationChange = 2

  /// The reason for a change of account.
  public let NSUbiquitousKeyValueStoreAccountChange = 3

  extension NSNotification.Name {
    /// Posted when the user signs in, signs out or switches the account.
    ///
    /// It has neither object nor `userInfo`; read `FileManager.ubiquityIdentityToken` then.
    public static let NSUbiquityIdentityDidChange = NSNotification.Name(
      "NSUbiquityIdentityDidChangeNotification")
  }

  extension FileManager {
    /// A token for the account that is signed in, also offline; nil when signed out.
    ///
    /// Compare it with `isEqual` and keep it with `NSKeyedArchiver`. It has no other use.
    ///
    /// - Complexity: O(1).
    public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? {
      Hub.shared.identityToken
    }
  }
#endif
