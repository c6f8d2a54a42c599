internal import Foundation
internal import Kith

/// The defaults of a program, and the baselines of one store's mirror in them.
struct Defaults {
  private let defaults: UserDefaults
  /// Defaults without set values, so that they return the registered ones.
  private let unset: UserDefaults
  private let baselinesKey: String

  init(suite: String?, store: String) {
    self.init(Self.suite(suite), store: store)
  }

  init(_ defaults: UserDefaults, store: String) {
    self.defaults = defaults
    unset = Self.suite("kith.mirror.unset")
    baselinesKey = "kith.mirror.\(store)"
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

  /// The value of a key after it was set to `value`, which the defaults may have changed. If the
  /// command line overrides the key, it cannot be read: then `value` itself.
  func kept(_ value: PropertyListValue?, forKey key: String) -> PropertyListValue? {
    isOverridden(key) ? value : raw(key).value
  }

  /// The set value of a key. If it equals the registered value, set and unset look alike: it counts
  /// as set only if it was equal when `baseline` was made.
  func value(_ key: String, since baseline: Baseline) throws(KithError) -> PropertyListValue? {
    let (value, error) = raw(key)
    if let error { throw error }
    guard let value, Baseline(store: nil, defaults: value).defaults != baseline.defaults,
      let registered = unset.object(forKey: key),
      let other = try? DefaultsValue.value(of: registered), Baseline.isSame(value, other)
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

  // MARK: Baselines

  /// The baselines of a device's store. Another device's values were never in this store.
  func baselines(of device: String) -> [String: Baseline] {
    guard let kept = defaults.dictionary(forKey: baselinesKey), kept["device"] as? String == device,
      let baselines = kept["baselines"] as? [String: Any]
    else { return [:] }
    return baselines.compactMapValues { ($0 as? Data).flatMap(Baseline.init(data:)) }
  }

  /// Saves the baselines, and writes all defaults to the disk.
  func save(_ baselines: [String: Baseline], of device: String) {
    let kept: [String: Any] = ["device": device, "baselines": baselines.mapValues(\.data)]
    defaults.set(kept, forKey: baselinesKey)
    defaults.synchronize()
  }
}

enum DefaultsValue {
  /// Seconds from 2001, some thirty million years. A date that is not finite, or whose year exceeds
  /// 32 bits, makes the whole file unreadable.
  private static let latestSeconds = 1e15

  static func isHeld(_ value: PropertyListValue) -> Bool {
    switch value {
    case .date(let date): abs(date.timeIntervalSinceReferenceDate) <= latestSeconds
    case .array(let values): values.allSatisfy(isHeld)
    case .dictionary(let members): members.values.allSatisfy(isHeld)
    default: true
    }
  }

  static func object(of value: PropertyListValue) -> Any {
    switch value {
    case .bool(let bool): bool
    case .integer(let integer): integer
    case .double(let double): double
    case .string(let string): string
    case .date(let date): date
    case .data(let data): data
    case .array(let values): values.map(object)
    case .dictionary(let members): members.mapValues(object)
    }
  }

  static func value(of object: Any) throws(KithError) -> PropertyListValue {
    // On Linux, elements of containers are wrapped in optionals.
    if let optional = object as? any OptionalObject {
      guard let object = optional.wrapped else {
        throw KithError(.unsupportedValue, "Property lists hold no nil.")
      }
      return try value(of: object)
    }
    // `as? Bool` would accept the number 1, too.
    switch object {
    case let string as String: return .string(string)
    case let date as Date: return .date(date)
    case let data as Data: return .data(data)
    case let number as NSNumber: return try value(of: number)
    case let objects as [Any]:
      var values: [PropertyListValue] = []
      for object in objects { values.append(try value(of: object)) }
      return .array(values)
    case let members as [AnyHashable: Any]:
      var values: [String: PropertyListValue] = [:]
      for (key, object) in members {
        guard let key = key as? String else {
          throw KithError(.unsupportedValue, "Dictionaries of property lists have strings as keys.")
        }
        values[key] = try value(of: object)
      }
      return .dictionary(values)
    default:
      throw KithError(
        .unsupportedValue, "A store holds no \(type(of: object)), only what property lists hold.")
    }
  }

  private static func value(of number: NSNumber) throws(KithError) -> PropertyListValue {
    // Foundation has one object each for true and false.
    if number === NSNumber(value: true) { return .bool(true) }
    if number === NSNumber(value: false) { return .bool(false) }
    switch UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "d"), UInt8(ascii: "f"): return .double(number.doubleValue)
    case UInt8(ascii: "Q") where number.uint64Value > UInt64(Int64.max):
      throw KithError(
        .unsupportedValue,
        "The integer is beyond \(Int64.max), the largest that property lists hold.")
    default: return .integer(number.int64Value)
    }
  }
}

/// Any optional, to unwrap it without knowing its type.
private protocol OptionalObject {
  var wrapped: Any? { get }
}

extension Optional: OptionalObject {
  var wrapped: Any? { self }
}
