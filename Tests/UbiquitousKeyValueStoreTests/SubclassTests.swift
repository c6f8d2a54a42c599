import Foundation
import Kith
import Synchronization
import Testing

@testable import UbiquitousKeyValueStore

/// A stand-in as tests of programs write them: two methods and a dictionary.
private class StandIn: NSUbiquitousKeyValueStore, @unchecked Sendable {
  private let values = Mutex<[String: UncheckedValue]>([:])

  override func object(forKey aKey: String) -> Any? {
    values.withLock { $0[aKey]?.value }
  }

  override func set(_ anObject: Any?, forKey aKey: String) {
    let value = UncheckedValue(value: anObject)
    values.withLock { $0[aKey] = anObject == nil ? nil : value }
  }
}

/// Tests hand over constants only.
private struct UncheckedValue: @unchecked Sendable {
  var value: Any?
}

/// Everything replaced. That it compiles is the test: every member is open and in the class body.
private final class Replaced: NSUbiquitousKeyValueStore, @unchecked Sendable {
  private static let one = Replaced()
  let calls = Mutex<[String]>([])
  private func call(_ name: String) { calls.withLock { $0.append(name) } }

  override init() { super.init() }
  override class var `default`: NSUbiquitousKeyValueStore { one }
  override func object(forKey aKey: String) -> Any? {
    call("object")
    return nil
  }
  override func string(forKey aKey: String) -> String? { aKey }
  override func array(forKey aKey: String) -> [Any]? { [aKey] }
  override func dictionary(forKey aKey: String) -> [String: Any]? { [aKey: 1] }
  override func data(forKey aKey: String) -> Data? { Data() }
  override func longLong(forKey aKey: String) -> Int64 { 1 }
  override func double(forKey aKey: String) -> Double { 1 }
  override func bool(forKey aKey: String) -> Bool { true }
  override func set(_ anObject: Any?, forKey aKey: String) { call("Any") }
  override func set(_ aString: String?, forKey aKey: String) { call("String") }
  override func set(_ aData: Data?, forKey aKey: String) { call("Data") }
  override func set(_ anArray: [Any]?, forKey aKey: String) { call("Array") }
  override func set(_ aDictionary: [String: Any]?, forKey aKey: String) { call("Dictionary") }
  override func set(_ value: Int64, forKey aKey: String) { call("Int64") }
  override func set(_ value: Double, forKey aKey: String) { call("Double") }
  override func set(_ value: Bool, forKey aKey: String) { call("Bool") }
  override func removeObject(forKey aKey: String) { call("remove") }
  override var dictionaryRepresentation: [String: Any] { ["a": 1] }
  override func synchronize() -> Bool { false }
}

@Suite struct SubclassTests {
  @Test func `a stand-in with two methods serves all others`() {
    let store: NSUbiquitousKeyValueStore = StandIn()
    store.set("text", forKey: "string")
    store.set(Data([1]), forKey: "data")
    store.set([1, 2], forKey: "array")
    store.set(["a": 1], forKey: "dictionary")
    store.set(Int64(7), forKey: "integer")
    store.set(2.5, forKey: "double")
    store.set(true, forKey: "bool")
    #expect(store.string(forKey: "string") == "text")
    #expect(store.data(forKey: "data") == Data([1]))
    #expect(store.array(forKey: "array") as? [Int] == [1, 2])
    #expect(store.dictionary(forKey: "dictionary") as? [String: Int] == ["a": 1])
    #expect(store.longLong(forKey: "integer") == 7)
    #expect(store.double(forKey: "double") == 2.5)
    #expect(store.bool(forKey: "bool"))
    #expect(store.object(forKey: "bool") as? Bool == true)
    store.removeObject(forKey: "bool")
    #expect(store.object(forKey: "bool") == nil)
    store.set(nil as String?, forKey: "string")
    #expect(store.object(forKey: "string") == nil)
  }

  @Test func `typed getters convert what a stand-in returns, of any number type`() {
    let store: NSUbiquitousKeyValueStore = StandIn()
    store.set(UInt8(3) as Any?, forKey: "n")
    #expect(store.longLong(forKey: "n") == 3)
    #expect(store.string(forKey: "n") == "3")
    #expect(store.bool(forKey: "n"))
  }

  @Test func `every member can be replaced, and calls choose the overload of their type`() {
    let store = Replaced()
    #expect(Replaced.default === Replaced.default)
    #expect(Replaced.default is Replaced)
    store.set("a", forKey: "k")
    store.set(Data(), forKey: "k")
    store.set([1], forKey: "k")
    store.set(["a": 1], forKey: "k")
    store.set(Int64(1), forKey: "k")
    store.set(1.5, forKey: "k")
    store.set(true, forKey: "k")
    store.set(Float(1), forKey: "k")
    store.set(3 as Int, forKey: "k")
    store.removeObject(forKey: "k")
    #expect(
      store.calls.withLock { $0 } == [
        "String", "Data", "Array", "Dictionary", "Int64", "Double", "Bool", "Any", "Any", "remove",
      ])
    #expect(store.string(forKey: "k") == "k")
    #expect(!store.synchronize())
  }
}

/// The signed-in account. One test after the other: notifications about it name no object.
@Suite(.serialized) struct IdentityTests {
  @Test func `a switch of accounts is told apart from what the store shows`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let (told, continuation) = AsyncStream<Bool>.makeStream()
    let token = NotificationCenter.default.addObserver(
      forName: .NSUbiquityIdentityDidChange, object: nil, queue: nil
    ) { continuation.yield($0.object == nil && ($0.userInfo ?? [:]).isEmpty) }
    defer { NotificationCenter.default.removeObserver(token) }
    var iterator = told.makeAsyncIterator()
    backend.signIn(nil)
    backend.signIn(nil)
    backend.signIn(.test(1))
    #expect(await iterator.next() == true)
    backend.signIn(.test(1))
    backend.signIn(.test(2))
    #expect(await iterator.next() == true)
    backend.signIn(nil)
    #expect(await iterator.next() == true)
    // None was told for the account that stayed: this is the next one.
    continuation.finish()
    #expect(await iterator.next() == nil)
  }

  @Test func `the identity's token is the account's, compares and can be archived`() throws {
    let backend = FakeBackend()
    let shared = SharedStore.on(backend)
    #expect(NSUbiquitousKeyValueStore(shared: shared).synchronize())
    #expect(shared.identityToken == nil)
    backend.signIn(.test(1))
    let token = try #require(shared.identityToken)
    #expect(token.isEqual(shared.identityToken))
    let archived = try NSKeyedArchiver.archivedData(
      withRootObject: token, requiringSecureCoding: true)
    let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSData.self, from: archived)
    #expect(token.isEqual(back))
    backend.signIn(.test(2))
    #expect(!token.isEqual(shared.identityToken))
    backend.signIn(nil)
    #expect(shared.identityToken == nil)
  }
}
