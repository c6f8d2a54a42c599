import Foundation
import Kith
import Testing

@testable import UbiquitousKeyValueStore

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
