#if !canImport(Darwin)
  public import Foundation

  /// The key of `userInfo` under which a notification says why, as `NSNumber`.
  public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"

  /// The key of `userInfo` under which a notification names the keys, as `[String]`.
  public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"

  /// The reason “another device wrote”.
  public let NSUbiquitousKeyValueStoreServerChange = 0

  /// The reason “the first pull of this device ended”: keys that it wrote before may have lost.
  public let NSUbiquitousKeyValueStoreInitialSyncChange = 1

  /// The reason “there is too little room”: writes of these keys were refused or are hidden.
  public let NSUbiquitousKeyValueStoreQuotaViolationChange = 2

  /// The reason “the account is another”.
  public let NSUbiquitousKeyValueStoreAccountChange = 3

  extension NSNotification.Name {
    /// Posted when somebody signed in, signed out or switched the account, with neither object nor
    /// `userInfo`; look at `FileManager.ubiquityIdentityToken` then.
    public static let NSUbiquityIdentityDidChange = NSNotification.Name(
      "NSUbiquityIdentityDidChangeNotification")
  }

  extension FileManager {
    /// Stands for the account that is signed in, offline too; nil when signed out.
    ///
    /// Compare it with `isEqual`, keep it with `NSKeyedArchiver`; it says nothing else.
    ///
    /// - Complexity: O(1).
    public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? {
      Hub.shared.identityToken
    }
  }
#endif
