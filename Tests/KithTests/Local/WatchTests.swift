import KithCore
import Testing

@testable import Kith

/// Tells changes by a script, as a node does to `kith watch`.
private struct TellingNode: NodeAccess {
  let script: @Sendable (_ tell: (KeyValueStore.Change) async throws -> Void) async throws -> Void

  func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    do {
      _ = await onEvent(.values([]))
      try await script { _ = await onEvent(.change(try LocalChange($0))) }
      return .done
    } catch {
      throw KithError(.control, "\(error)")
    }
  }
}

/// Changes that come while a consumer is busy.
@Suite("Watching", .timeLimit(.minutes(5)))
struct WatchTests {
  private static func change(
    _ key: String, _ old: PropertyListValue?, _ new: PropertyListValue?
  ) -> KeyValueStore.Change {
    KeyValueStore.Change(reason: .ownWrite, items: [.init(key, old, new)])
  }

  /// Returns the changes that a consumer gets. The node tells the first one, and the others while
  /// the consumer is busy with it; then it ends, as told.
  private static func heard(
    _ later: [KeyValueStore.Change], joins: Bool
  ) async throws(KithError) -> [KeyValueStore.Change] {
    let (busy, hasBegun) = AsyncStream.makeStream(of: Void.self)
    let (told, allTold) = AsyncStream.makeStream(of: Void.self)
    let watched = Watched()
    let node = TellingNode { tell in
      try await tell(change("a", nil, 0))
      for await _ in busy { break }
      for change in later { try await tell(change) }
      allTold.finish()
    }
    try await node.watch("com.example.test", joins: joins) { _ in
    } onChange: { change in
      hasBegun.yield()
      for await _ in told {}
      watched.state.withLock { $0.changes.append(change) }
    }
    return watched.state.withLock { $0.changes }
  }

  @Test func `joined, at most one change of each key waits`() async throws {
    let numbers = (1...200).map { Self.change("a", .integer($0 - 1), .integer($0)) }
    let others = [
      Self.change("b", nil, "new"), Self.change("c", nil, 1), Self.change("c", 1, nil),
    ]
    let heard = try await Self.heard(numbers + others, joins: true)
    let joined = KeyValueStore.Change(
      reason: .ownWrite, items: [.init("a", 0, 200), .init("b", nil, "new")], isJoined: true)
    #expect(heard == [Self.change("a", nil, 0), joined])
  }

  @Test func `otherwise each is told, but for those beyond the limit`() async throws {
    let numbers = (1...200).map { Self.change("a", .integer($0 - 1), .integer($0)) }
    let heard = try await Self.heard(numbers, joins: false)
    #expect(heard.count == 1 + ChangeBuffer.limit)
    #expect(Array(heard.dropFirst().dropLast()) == Array(numbers.prefix(ChangeBuffer.limit - 1)))
    #expect(heard.last?.isJoined == true && heard.last?.items.last?.new == 200)
  }

  @Test func `waiting changes come before the error of a node that ended`() async throws {
    let watched = Watched()
    let node = TellingNode { tell in
      try await tell(Self.change("a", nil, 0))
      try await tell(Self.change("b", nil, 0))
      throw KithError.malformedControl
    }
    let error = await #expect(throws: KithError.self) {
      try await node.watch("com.example.test") { _ in
      } onChange: { change in
        watched.state.withLock { $0.changes.append(change) }
      }
    }
    #expect(error?.code == .control)
    #expect(watched.state.withLock { $0.changes.map(\.keys) } == [["a"], ["b"]])
  }
}
