import Foundation
import Kith
import Testing

@testable import UbiquitousKeyValueStore

/// The signed-in account. One test after the other: notifications about it name no object.
@Suite(.serialized) struct IdentityTests {
  @Test func `a switch of accounts is told apart from what the store shows`() async throws {
    let backing = FakeBacking()
    let store = NSUbiquitousKeyValueStore.on(backing)
    #expect(store.synchronize())
    let (told, continuation) = AsyncStream<Bool>.makeStream()
    let token = NotificationCenter.default.addObserver(
      forName: .NSUbiquityIdentityDidChange, object: nil, queue: nil
    ) { continuation.yield($0.object == nil && ($0.userInfo ?? [:]).isEmpty) }
    defer { NotificationCenter.default.removeObserver(token) }
    var iterator = told.makeAsyncIterator()
    backing.signIn(nil)
    backing.signIn(nil)
    backing.signIn(.test(1))
    #expect(await iterator.next() == true)
    backing.signIn(.test(1))
    backing.signIn(.test(2))
    #expect(await iterator.next() == true)
    backing.signIn(nil)
    #expect(await iterator.next() == true)
    // None was told for the account that stayed: this is the next one.
    continuation.finish()
    #expect(await iterator.next() == nil)
  }

  @Test func `the identity's token is the account's, compares and can be archived`() throws {
    let backing = FakeBacking()
    let hub = Hub.on(backing)
    #expect(NSUbiquitousKeyValueStore(hub: hub).synchronize())
    #expect(hub.identityToken == nil)
    backing.signIn(.test(1))
    let token = try #require(hub.identityToken)
    #expect(token.isEqual(hub.identityToken))
    let archived = try NSKeyedArchiver.archivedData(
      withRootObject: token, requiringSecureCoding: true)
    let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSData.self, from: archived)
    #expect(token.isEqual(back))
    backing.signIn(.test(2))
    #expect(!token.isEqual(hub.identityToken))
    backing.signIn(nil)
    #expect(hub.identityToken == nil)
  }
}
