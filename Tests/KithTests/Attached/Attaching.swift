import Foundation
import Glibc
import KithCore
import NIOCore
import Synchronization

@testable import Kith

/// What a body that blocks returns, called on a thread of its own: the node's tasks need theirs.
func blocking<Result: Sendable>(
  _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
  }
}

extension StoreIdentifier {
  /// The store of these tests.
  static var test: Self { StoreIdentifier("com.example.test") ?? { preconditionFailure() }() }
}

/// A program that is attached.
struct Program: Sendable {
  let backing: AttachedStore
  let store: KeyValueStore

  init(_ backing: AttachedStore) {
    self.backing = backing
    store = KeyValueStore(backing: backing, view: backing.view)
  }

  func close() async throws { try await blocking { backing.close() } }
}

extension Served {
  /// Runs the node while the body does its work.
  func run<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    try await running(node) {
      try await until { (try? await self.client.version()) == 1 }
      return try await body()
    }
  }

  func attach(
    _ policy: Policy = .standard, view: StoreView? = nil, pending: [PendingWrite] = [],
    onEnd: @escaping @Sendable (AttachedStore) -> Void = { _ in }
  ) async throws -> Program {
    let path = path
    return Program(
      try await blocking {
        try AttachedStore.attach(
          directory: path, store: .test, policy: policy, view: view, pending: pending, onEnd: onEnd)
      })
  }
}

/// A node by hand: a test reads what a client sends, and says what it likes.
final class ScriptedNode: Sendable {
  let directory: TestDirectory
  private let listener: Int32
  private let connection = Mutex<ControlStream?>(nil)

  init() throws {
    directory = try TestDirectory()
    listener = try ControlSocket.listen(at: directory.child("control"))
  }

  deinit {
    hangUp()
    close(listener)
  }

  /// Takes a client in and tells it what the store shows.
  func attach(
    shows entries: [ControlEntry] = [], _ policy: Policy = .standard,
    onEnd: @escaping @Sendable (AttachedStore) -> Void = { _ in }
  ) async throws -> Program {
    let path = directory.path
    async let attached = blocking {
      try AttachedStore.attach(directory: path, store: .test, policy: policy, onEnd: onEnd)
    }
    try await blocking {
      let descriptor = accept(self.listener, nil, nil)
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      self.connection.withLock { $0 = ControlStream(descriptor: descriptor) }
      let request = try self.next()
      guard request.operation == .attach else { throw TimedOut() }
      var response = ControlResponse(id: request.id, isLast: false)
      response.entries = entries
      try self.say(response)
    }
    return Program(try await attached)
  }

  /// The next request; it blocks.
  func next() throws -> ControlRequest {
    try connection.withLock { stream in
      while true {
        if let line = try stream?.nextLine() {
          guard let request = ControlJSON.decode(ControlRequest.self, line) else { break }
          return request
        }
        guard stream?.wait(for: POLLIN, until: .now.advanced(by: .seconds(60))) == true,
          case .bytes? = stream?.receive()
        else { break }
      }
      throw TimedOut()
    }
  }

  func say(_ response: ControlResponse) throws { try say(ControlJSON.encode(response)) }

  func say(_ line: ByteBuffer) throws {
    var line = line
    try connection.withLock { stream in
      guard let stream else { throw TimedOut() }
      while try !ControlStream.send(&line, to: stream.descriptor) {
        guard stream.wait(for: POLLOUT, until: .now.advanced(by: .seconds(60))) else {
          throw TimedOut()
        }
      }
    }
  }

  /// Tells a change.
  func tell(
    _ reason: Change.Reason, _ values: [(String, PropertyListValue?)], hasMore: Bool = false
  ) throws {
    var response = ControlResponse(id: AttachedStore.attachID, isLast: false)
    var change = try ControlChange(Change(reason: reason, items: []))
    change.new = try values.map { try ControlEntry(key: $0.0, value: $0.1) }
    response.change = change
    response.hasMore = hasMore ? true : nil
    try say(response)
  }

  /// Answers a commit.
  func answer(_ id: UInt64, _ error: KithError? = nil) throws {
    var response = ControlResponse(id: id)
    response.error = error.map(ControlFailure.init)
    try say(response)
  }

  /// Ends the connection, as a process does that is killed.
  func hangUp() {
    connection.withLock { stream in
      stream?.close()
      stream = nil
    }
  }
}

/// Counts what happens.
final class Counter: Sendable {
  private let count = Atomic<Int>(0)
  var value: Int { count.load(ordering: .sequentiallyConsistent) }
  func add() { count.add(1, ordering: .sequentiallyConsistent) }
}
