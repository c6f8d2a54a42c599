#if !canImport(Darwin)
  public import Foundation
  internal import Kith

  /// A key-value store that all devices of an account share: Apple's class of this name, on Kith.
  ///
  /// Reads come from memory. Writes show at once and are durable soon, at the latest when
  /// ``synchronize()`` returns or the process ends normally; those of 20 ms are published as one. What other devices write is announced by
  /// ``didChangeExternallyNotification``. Any thread may use an object.
  ///
  /// Every member is called through the class, so a subclass may replace it: typed setters call
  /// ``set(_:forKey:)-(Any?,_)``, typed getters ``object(forKey:)``, and a stand-in for tests needs
  /// only those two.
  ///
  /// The rules are those of Apple's
  /// [NSUbiquitousKeyValueStore](https://developer.apple.com/documentation/foundation/nsubiquitouskeyvaluestore);
  /// <doc:Differences> says where they differ.
  // Unchecked, since NSObject is not Sendable: the one stored property is constant and Sendable.
  // Subclasses with state of their own say themselves how it is guarded.
  open class NSUbiquitousKeyValueStore: NSObject, @unchecked Sendable {
    private let hub: Hub

    private static let shared = NSUbiquitousKeyValueStore()

    /// The store of the program, the same object each time.
    ///
    /// The first use reads the configuration; see ``UbiquityBootstrap``.
    open class var `default`: NSUbiquitousKeyValueStore {
      Hub.shared.openIfConfigured()
      return shared
    }

    /// Posted when something other than this program changed the store, or refused a write of it.
    ///
    /// `object` is the store, for each object that is alive. `userInfo` holds the reason as
    /// `NSNumber` under ``NSUbiquitousKeyValueStoreChangeReasonKey`` and the keys as `[String]`
    /// under ``NSUbiquitousKeyValueStoreChangedKeysKey``. What arrives within 50 ms is told as one
    /// for each reason. It is posted on a thread of its own, one notification after the other; an
    /// observer that belongs on the main thread says so with `queue: .main`.
    public static let didChangeExternallyNotification = NSNotification.Name(
      "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")

    /// Makes another object on the program's store; the data is the same.
    public override init() {
      hub = .shared
      super.init()
      hub.add(self)
    }

    // MARK: Reading

    /// The value of a key: a property-list object, or nil.
    ///
    /// Numbers and bools are `NSNumber`, also within arrays and dictionaries, so that
    /// `as? Bool`, `as? Int`, `as? Int64` and `as? Double` all work.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: A copy of what is in memory.
    /// - Complexity: O(*n*) in the size of the value.
    open func object(forKey aKey: String) -> Any? {
      hub.backing.value(forKey: aKey)?.foundationObject
    }

    /// The string of a key, or the text of its number; nil when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The string.
    open func string(forKey aKey: String) -> String? {
      Conversion.string(object(forKey: aKey))
    }

    /// The array of a key; nil when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The array.
    open func array(forKey aKey: String) -> [Any]? {
      object(forKey: aKey) as? [Any]
    }

    /// The dictionary of a key; nil when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The dictionary.
    open func dictionary(forKey aKey: String) -> [String: Any]? {
      object(forKey: aKey) as? [String: Any]
    }

    /// The data of a key; nil when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The data.
    open func data(forKey aKey: String) -> Data? {
      object(forKey: aKey) as? Data
    }

    /// The integer of a key; 0 when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The integer. True is 1, fractions are cut off, a string gives the number that it
    ///   begins with, and what is out of range gives the nearest integer there is.
    open func longLong(forKey aKey: String) -> Int64 {
      Conversion.integer(object(forKey: aKey))
    }

    /// The number of a key; 0 when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The number. True is 1, and a string gives the number that it begins with.
    open func double(forKey aKey: String) -> Double {
      Conversion.double(object(forKey: aKey))
    }

    /// The bool of a key; false when it is missing or of another type.
    ///
    /// - Parameter aKey: The key.
    /// - Returns: The bool. A number is true unless it is 0, a string by the rule of
    ///   `NSString.boolValue`.
    open func bool(forKey aKey: String) -> Bool {
      Conversion.bool(object(forKey: aKey))
    }

    /// All keys with their values: a copy of what is in memory.
    ///
    /// - Complexity: O(*n*) in the size of the store.
    open var dictionaryRepresentation: [String: Any] {
      hub.backing.values.foundationDictionary
    }

    // MARK: Writing

    /// Sets the value of a key. It shows at once; nil removes the key.
    ///
    /// A value that property lists cannot hold is logged and ignored. A value that has no room, or
    /// a key beyond its limit, changes nothing and is announced with
    /// ``NSUbiquitousKeyValueStoreQuotaViolationChange``.
    ///
    /// - Parameters:
    ///   - anObject: A string, number, bool, date, data, or an array or dictionary of such.
    ///   - aKey: The key, 1 to 64 bytes of UTF-8.
    /// - Complexity: O(*n*) in the size of the value.
    open func set(_ anObject: Any?, forKey aKey: String) {
      hub.set(anObject, forKey: aKey)
    }

    /// Sets a string; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - aString: The string; nil removes the key.
    ///   - aKey: The key.
    open func set(_ aString: String?, forKey aKey: String) {
      set(aString.map { $0 as Any }, forKey: aKey)
    }

    /// Sets data; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - aData: The data; nil removes the key.
    ///   - aKey: The key.
    open func set(_ aData: Data?, forKey aKey: String) {
      set(aData.map { $0 as Any }, forKey: aKey)
    }

    /// Sets an array; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - anArray: The array; nil removes the key.
    ///   - aKey: The key.
    open func set(_ anArray: [Any]?, forKey aKey: String) {
      set(anArray.map { $0 as Any }, forKey: aKey)
    }

    /// Sets a dictionary; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - aDictionary: The dictionary; nil removes the key.
    ///   - aKey: The key.
    open func set(_ aDictionary: [String: Any]?, forKey aKey: String) {
      set(aDictionary.map { $0 as Any }, forKey: aKey)
    }

    /// Sets an integer; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - value: The integer.
    ///   - aKey: The key.
    open func set(_ value: Int64, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Sets a number; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - value: The number.
    ///   - aKey: The key.
    open func set(_ value: Double, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Sets a bool; see ``set(_:forKey:)-(Any?,_)``.
    ///
    /// - Parameters:
    ///   - value: The bool.
    ///   - aKey: The key.
    open func set(_ value: Bool, forKey aKey: String) {
      set(NSNumber(value: value) as Any, forKey: aKey)
    }

    /// Removes a key; nothing happens if it is missing.
    ///
    /// - Parameter aKey: The key.
    open func removeObject(forKey aKey: String) {
      set(nil as Any?, forKey: aKey)
    }

    /// Makes what was written durable. It waits for the disk where something is to be written, and
    /// never for the network.
    ///
    /// - Returns: False where the store is not configured (``UbiquityBootstrap``) or the disk
    ///   failed; true otherwise, also offline and signed out.
    @discardableResult
    open func synchronize() -> Bool {
      hub.synchronize()
    }

    /// Makes an object on given data, and tells it of changes as long as it lives.
    init(hub: Hub) {
      self.hub = hub
      super.init()
      hub.add(self)
    }
  }
#endif
