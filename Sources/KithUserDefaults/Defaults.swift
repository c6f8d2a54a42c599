internal import Foundation
internal import Kith

/// The defaults of a program, and the notes that the mirror of one store keeps in them.
struct Defaults {
  private let defaults: UserDefaults
  /// Defaults in which no value is set, so that they return the registered values.
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

  /// Returns whether the command line overrides the key, so that its set value cannot be read.
  func isOverridden(_ key: String) -> Bool {
    defaults.volatileDomain(forName: UserDefaults.argumentDomain)[key] != nil
  }

  /// Returns the value that the defaults give for a key, set or registered. If no store can hold
  /// it, the value is nil and the error says why.
  func raw(_ key: String) -> (value: PropertyListValue?, error: KithError?) {
    guard let object = defaults.object(forKey: key) else { return (nil, nil) }
    do throws(KithError) {
      return (try DefaultsValue.value(of: object), nil)
    } catch {
      var error = error
      error.key = key
      return (nil, error)
    }
  }

  /// Returns the value that is set for a key. If it equals the registered value, it counts as set
  /// only if it did so when `mark` was made: the two cases look the same otherwise.
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

  private var kept: [String: Any] { defaults.dictionary(forKey: marksKey) ?? [:] }

  /// Returns the marks of a device's store. Marks of another device are ignored, because that store
  /// never held these values. If the device is unknown, the existing marks count.
  func marks(of device: String?) -> [String: Mark] {
    let kept = kept
    guard device == nil || kept["device"] as? String == device,
      let marks = kept["marks"] as? [String: Any]
    else { return [:] }
    return marks.compactMapValues { ($0 as? Data).flatMap(Mark.init(data:)) }
  }

  /// Saves the marks, and writes all defaults to the disk.
  func save(_ marks: [String: Mark], of device: String?) {
    var kept: [String: Any] = ["marks": marks.mapValues(\.data)]
    kept["device"] = device ?? self.kept["device"] as? String
    defaults.set(kept, forKey: marksKey)
    defaults.synchronize()
  }
}
