internal import Foundation
internal import Kith

/// The defaults of a program, and what the mirror of one store remembers in them.
struct Defaults {
  private let defaults: UserDefaults
  /// Defaults in which nothing is set, so that they give what is registered.
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
    // On Linux every name will do; elsewhere all but that of the program itself and the global one.
    guard let defaults = UserDefaults(suiteName: name) else {
      preconditionFailure("UserDefaults takes no suite of this name")
    }
    return defaults
  }

  // MARK: Values

  /// Whether the command line overrides the key: what is set cannot be read then.
  func isOverridden(_ key: String) -> Bool {
    defaults.volatileDomain(forName: UserDefaults.argumentDomain)[key] != nil
  }

  /// What the defaults give for a key, whether it is set or registered; nil also for what no store
  /// could hold.
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

  /// What is set for a key. What equals the registered value counts as set only where it was so
  /// when `mark` was made: otherwise nobody can tell.
  func value(_ key: String, since mark: Mark) throws(KithError) -> PropertyListValue? {
    let (value, error) = raw(key)
    if let error { throw error }
    guard let value, Mark(store: nil, defaults: value).defaults != mark.defaults,
      let registered = unset.object(forKey: key),
      let other = try? DefaultsValue.value(of: registered), Mark.isSame(value, other)
    else { return value }
    return nil
  }

  /// Sets a key, to a value that ``DefaultsValue/isHeld(_:)``; nil removes it.
  func set(_ value: PropertyListValue?, forKey key: String) {
    if let value {
      defaults.set(DefaultsValue.object(of: value), forKey: key)
    } else {
      defaults.removeObject(forKey: key)
    }
  }

  // MARK: Marks

  private var kept: [String: Any] { defaults.dictionary(forKey: marksKey) ?? [:] }

  /// What a mirror of the device's store remembered; of another device's nothing, since that store
  /// never held it. Where the device is not known, what there is counts.
  func marks(of device: String?) -> [String: Mark] {
    let kept = kept
    guard device == nil || kept["device"] as? String == device,
      let marks = kept["marks"] as? [String: Any]
    else { return [:] }
    return marks.compactMapValues { ($0 as? Data).flatMap(Mark.init(data:)) }
  }

  /// Remembers marks, and writes everything to the disk.
  func save(_ marks: [String: Mark], of device: String?) {
    var kept: [String: Any] = ["marks": marks.mapValues(\.data)]
    kept["device"] = device ?? self.kept["device"] as? String
    defaults.set(kept, forKey: marksKey)
    defaults.synchronize()
  }
}
