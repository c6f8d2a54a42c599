#if !canImport(Darwin)
  public import Foundation

  /// The `userInfo` key of a notification's reason, an `NSNumber`.
  public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"

  /// The `userInfo` key of the changed keys, a `[String]`.
  public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"

  /// The reason for a write of another device.
  public let NSUbiquitousKeyValueStoreServerChange = 0

  /// The reason when signing in brought the account's data: local writes of these keys may have
  /// lost.
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
    /// Only compare it with `isEqual`, and archive it with `NSKeyedArchiver`.
    ///
    /// - Complexity: O(1).
    public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? {
      SharedStore.shared.identityToken
    }
  }
#endif
