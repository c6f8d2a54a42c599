import Foundation
import UbiquitousKeyValueStore

/// A store in memory that a test puts in place of the real one.
final class MemoryStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
  // Unchecked: only the main thread uses it.
  private var values: [String: Any] = [:]

  private static let instance = MemoryStore()
  override class var `default`: NSUbiquitousKeyValueStore { instance }

  override func object(forKey aKey: String) -> Any? { values[aKey] }
  override func set(_ anObject: Any?, forKey aKey: String) { values[aKey] = anObject }
  override func removeObject(forKey aKey: String) { values[aKey] = nil }
  override var dictionaryRepresentation: [String: Any] { values }
  override func synchronize() -> Bool { true }
}

/// Reads flags from a store, the program's own if it is told no other.
struct FlagProvider {
  let store: NSUbiquitousKeyValueStore

  init(store: NSUbiquitousKeyValueStore = .default) { self.store = store }

  var name: String { store == .default ? "iCloud" : "iCloud (custom)" }

  func isOn(_ flag: String) -> Bool? { store.object(forKey: flag) as? Bool }
  func set(_ isOn: Bool?, _ flag: String) {
    if let isOn { store.set(isOn, forKey: flag) } else { store.removeObject(forKey: flag) }
  }
}

// The methods that programs add to the class themselves.
extension NSUbiquitousKeyValueStore {
  func date(forKey key: String) -> Date? { object(forKey: key) as? Date }
  func integer(forKey key: String) -> Int { Int(longLong(forKey: key)) }
  func set(_ value: Int, forKey key: String) { set(Int64(value), forKey: key) }
  func set(_ value: Date?, forKey key: String) { set(value as Any?, forKey: key) }
  subscript(key: String) -> String? {
    get { string(forKey: key) }
    set { set(newValue, forKey: key) }
  }
  func setCodable<Value: Encodable>(_ value: Value, forKey key: String) throws {
    set(try JSONEncoder().encode(value), forKey: key)
  }
  func codable<Value: Decodable>(_ type: Value.Type, forKey key: String) throws -> Value? {
    try data(forKey: key).map { try JSONDecoder().decode(type, from: $0) }
  }
}

/// A property wrapper over the program's store.
@propertyWrapper struct CloudStored<Value> {
  let key: String
  let defaultValue: Value
  let store: NSUbiquitousKeyValueStore

  init(wrappedValue: Value, _ key: String, store: NSUbiquitousKeyValueStore = .default) {
    self.key = key
    self.store = store
    defaultValue = wrappedValue
  }

  var wrappedValue: Value {
    get { store.object(forKey: key) as? Value ?? defaultValue }
    nonmutating set {
      store.set(newValue as Any?, forKey: key)
      store.synchronize()
    }
  }
}
