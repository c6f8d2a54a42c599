#if !canImport(Darwin)
  public import Foundation
  internal import Kith

  /// A key-value store that all devices of an account share: Apple's class of this name, on Kith.
  ///
  /// Reads come from memory, and a write is visible at once. It is durable soon, at the latest when
  /// ``synchronize()`` returns or the process ends normally. Writes within 20 ms are published
  /// together. ``didChangeExternallyNotification`` announces writes of other devices. Any thread
  /// may use an object. The first use opens the directory, and may block for 10 seconds or more
  /// while another program starts, ends or does not answer.
  ///
  /// ```swift
  /// try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")
  /// let store = NSUbiquitousKeyValueStore.default
  /// store.set("dark", forKey: "theme")
  /// print(store.string(forKey: "theme") ?? "not set")
  /// ```
  ///
  /// A subclass may override members. Typed setters call `set(_:forKey:)` of any value and typed
  /// getters call ``object(forKey:)``; a test double needs only those two.
  ///
  /// The rules are those of Apple's
  /// [NSUbiquitousKeyValueStore](https://developer.apple.com/documentation/foundation/nsubiquitouskeyvaluestore),
  /// except for <doc:Differences>.
  // Unchecked, because NSObject is not Sendable: the one stored property is constant and Sendable.
  // A subclass documents how its state is guarded.
  open class NSUbiquitousKeyValueStore: NSObject, @unchecked Sendable {
    private let shared: SharedStore

    private static let shared = NSUbiquitousKeyValueStore()

    /// The program's store, the same object each time.
    ///
    /// The first use reads the configuration; see ``UbiquityBootstrap``.
    open class var `default`: NSUbiquitousKeyValueStore {
      SharedStore.shared.openIfConfigured()
      return shared
    }

    /// Posted when another program or device changed the store, or a write of this program was
    /// refused.
    ///
    /// `object` is the store, for each living object. `userInfo` holds the reason as `NSNumber`
    /// under ``NSUbiquitousKeyValueStoreChangeReasonKey`` and the keys as `[String]` under
    /// ``NSUbiquitousKeyValueStoreChangedKeysKey``. Changes within 50 ms become one notification
    /// for each reason.
    ///
    /// Notifications are posted in sequence, on their own thread. For the main thread, observe with
    /// `queue: .main`:
    ///
    /// ```swift
    /// let observer = NotificationCenter.default.addObserver(
    ///   forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
    ///   queue: .main
    /// ) { print($0.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []) }
    /// ```
    public static let didChangeExternallyNotification = NSNotification.Name(
      "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")

    /// Makes another object on the program's store, with the same data.
    public override init() {
      shared = .shared
      super.init()
      shared.add(self)
    }

    // MARK: Reading

    /// Returns the value of a key: a property-list object, or nil.
    ///
    /// Numbers and bools are `NSNumber`, also nested, so that `as? Bool`, `as? Int`, `as? Int64`
    /// and `as? Double` all work. Containers are copies.
    ///
    /// - Complexity: O(*n*) in the size of the value.
    open func object(forKey aKey: String) -> Any? {
      shared.backend.value(forKey: aKey)?.foundationObject
    }

    /// Returns a key's string, or the text of its number; nil if missing or of another type.
    open func string(forKey aKey: String) -> String? {
      Conversion.string(object(forKey: aKey))
    }

    /// Returns a key's array; nil if missing or of another type.
    open func array(forKey aKey: String) -> [Any]? {
      object(forKey: aKey) as? [Any]
    }

    /// Returns a key's dictionary; nil if missing or of another type.
    open func dictionary(forKey aKey: String) -> [String: Any]? {
      object(forKey: aKey) as? [String: Any]
    }

    /// Returns a key's data; nil if missing or of another type.
    open func data(forKey aKey: String) -> Data? {
      object(forKey: aKey) as? Data
    }

    /// Returns a key's integer; 0 if missing or of another type.
    ///
    /// True is 1, and fractions are cut off. A string returns its leading number, a number out of
    /// range the nearest integer.
    open func longLong(forKey aKey: String) -> Int64 {
      Conversion.integer(object(forKey: aKey))
    }

    /// Returns a key's number; 0 if missing or of another type.
    ///
    /// True is 1, and a string returns its leading number.
    open func double(forKey aKey: String) -> Double {
      Conversion.double(object(forKey: aKey))
    }

    /// Returns a key's bool; false if missing or of another type.
    ///
    /// A number is true unless it is 0. A string follows `NSString.boolValue`.
    open func bool(forKey aKey: String) -> Bool {
      Conversion.bool(object(forKey: aKey))
    }

    /// A copy of all keys and values in memory.
    ///
    /// - Complexity: O(*n*) in the size of the store.
    open var dictionaryRepresentation: [String: Any] {
      shared.backend.values.foundationDictionary
    }

    // MARK: Writing

    /// Sets a key's value, which is visible at once; nil removes the key.
    ///
    /// A value that property lists cannot hold is logged and ignored. If a value does not fit, or a
    /// key is too long, nothing changes, and a notification with
    /// ``NSUbiquitousKeyValueStoreQuotaViolationChange`` follows.
    ///
    /// If another program's node has the directory open, this blocks until that node accepts the
    /// write: at most 30 seconds, and if it ends, up to 10 more for a new owner.
    ///
    /// ```swift
    /// store.set(["https://example.com"], forKey: "bookmarks")
    /// ```
    ///
    /// - Parameters:
    ///   - anObject: A string, number, bool, date, data, or an array or dictionary of these.
    ///   - aKey: The key, 1 to 64 bytes of UTF-8.
    /// - Complexity: O(*n*) in the size of the value.
    open func set(_ anObject: Any?, forKey aKey: String) {
      shared.set(anObject, forKey: aKey)
    }

    /// Sets a string; nil removes the key.
    open func set(_ aString: String?, forKey aKey: String) {
      set(aString.map { $0 as Any }, forKey: aKey)
    }

    /// Sets data; nil removes the key.
    open func set(_ aData: Data?, forKey aKey: String) {
      set(aData.map { $0 as Any }, forKey: aKey)
    }

    /// Sets an array; nil removes the key.
    open func set(_ anArray: [Any]?, forKey aKey: String) {
      set(anArray.map { $0 as Any }, forKey: aKey)
    }

    /// Sets a dictionary; nil removes the key.
    open func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
      set(aDictionary.map { $0 as Any }, forKey: aKey)
    }

    /// Sets an integer.
    open func set(_ value: Int64, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Sets a number.
    open func set(_ value: Double, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Sets a bool.
    open func set(_ value: Bool, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Removes a key, if it is present.
    ///
    /// Blocks as `set(_:forKey:)` does: at another program's node for up to 30 seconds.
    open func removeObject(forKey aKey: String) {
      set(nil as Any?, forKey: aKey)
    }

    /// Makes all earlier writes durable; blocks for the disk, never for the network.
    ///
    /// If another program's node has the directory open, this blocks until that node answers: at
    /// most 30 seconds, and if it ends, up to 10 more for a new owner.
    ///
    /// - Returns: False if the store is not configured (``UbiquityBootstrap``), the disk failed, or
    ///   that node was killed or did not answer; otherwise true, also offline and signed out.
    @discardableResult
    open func synchronize() -> Bool {
      shared.synchronize()
    }

    init(shared: SharedStore) {
      self.shared = shared
      super.init()
      shared.add(self)
    }
  }

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
