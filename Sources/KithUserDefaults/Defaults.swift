internal import Foundation
internal import Kith

/// The defaults of a program, and the marks of one store's mirror in them.
struct Defaults {
  private let defaults: UserDefaults
  /// Defaults without set values, so that they return the registered ones.
  private let unset: UserDefaults
  private let marksKey: String

  init(suite: String?, store: String) {
    self.init(Self.suite(suite), store: store)
  }

  init(_ defaults: UserDefaults, store: String) {
    self.defaults = defaults
    unset = Self.suite("kith.mirror.unset")
    marksKey = "kith.mirror.\(store)"
  }

  private static func suite(_ name: String?) -> UserDefaults {
    // On Linux every name works; elsewhere all but the program's own and the global one.
    guard let defaults = UserDefaults(suiteName: name) else {
      preconditionFailure("UserDefaults takes no suite of this name")
    }
    return defaults
  }

  // MARK: Values

  /// Whether the command line overrides the key, so that its set value cannot be read.
  func isOverridden(_ key: String) -> Bool {
    defaults.volatileDomain(forName: UserDefaults.argumentDomain)[key] != nil
  }

  /// The set or registered value of a key. If no store can hold it, the value is nil and the error
  /// has the reason.
  func raw(_ key: String) -> (value: PropertyListValue?, error: KithError?) {
    guard let object = defaults.object(forKey: key) else { return (nil, nil) }
    do throws(KithError) {
      return (try DefaultsValue.value(of: object), nil)
    } catch {
      var error = error
      error.key = KeyValueStore.Key(key)
      return (nil, error)
    }
  }

  /// The set value of a key. If it equals the registered value, set and unset look alike: it counts
  /// as set only if it was equal when `mark` was made.
  func value(_ key: String, since mark: Mark) throws(KithError) -> PropertyListValue? {
    let (value, error) = raw(key)
    if let error { throw error }
    guard let value, Mark(store: nil, defaults: value).defaults != mark.defaults,
      let registered = unset.object(forKey: key),
      let other = try? DefaultsValue.value(of: registered), Mark.isSame(value, other)
    else { return value }
    return nil
  }

  /// Sets a key to a value that satisfies ``DefaultsValue/isHeld(_:)``; nil removes it.
  func set(_ value: PropertyListValue?, forKey key: String) {
    if let value {
      defaults.set(DefaultsValue.object(of: value), forKey: key)
    } else {
      defaults.removeObject(forKey: key)
    }
  }

  // MARK: Marks

  /// The marks of a device's store. Another device's values were never in this store.
  func marks(of device: String) -> [String: Mark] {
    guard let kept = defaults.dictionary(forKey: marksKey), kept["device"] as? String == device,
      let marks = kept["marks"] as? [String: Any]
    else { return [:] }
    return marks.compactMapValues { ($0 as? Data).flatMap(Mark.init(data:)) }
  }

  /// Saves the marks, and writes all defaults to the disk.
  func save(_ marks: [String: Mark], of device: String) {
    let kept: [String: Any] = ["device": device, "marks": marks.mapValues(\.data)]
    defaults.set(kept, forKey: marksKey)
    defaults.synchronize()
  }
}
