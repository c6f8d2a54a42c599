import Foundation
import Glibc
import KithCore
import KithCrypto
import KithTestSupport
import NIOCore
import Synchronization

@testable import Kith

/// Returns the result of a body that blocks, called on a thread of its own: the node's tasks need
/// theirs.
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

extension DeviceID {
  /// A device of these tests.
  static var test: Self {
    Self(hex: String(repeating: "07", count: 32)) ?? { preconditionFailure() }()
  }
}

/// A program that is attached.
struct Program: Sendable {
  let node: RemoteNode
  let store: KeyValueStore

  func close() async throws { try await blocking { node.close() } }
}

extension Served {
  /// Runs the node while the body does its work.
  func run<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    try await running(node) {
      try await eventually { (try? await self.client.status()) != nil }
      return try await body()
    }
  }

  func attach(_ policy: Policy = .standard) async throws -> Program {
    let path = path
    return try await blocking { try Program(attachedTo: path, policy) }
  }
}

extension Program {
  /// Attaches and opens the store.
  init(
    attachedTo path: String, _ policy: Policy = .standard,
    onEnd: @escaping @Sendable () -> Void = {}
  ) throws {
    node = try RemoteNode.connect(to: path, attaches: true, onEnd: onEnd)
    do {
      store = KeyValueStore(service: node, view: try node.open(.test, policy: policy))
    } catch {
      node.close()
      throw error
    }
  }
}

/// One end of the control socket, read and written frame by frame. It blocks.
final class RawEnd: Sendable {
  let descriptor: Int32
  private let received = Mutex(ByteBuffer())

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    // A test that hangs fails at the call that hangs.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(
        descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
  }

  /// Connects to a node, without a word.
  convenience init(path: String) throws { self.init(try LocalSocket.connect(to: path)) }

  deinit { close(descriptor) }

  func send(_ bytes: ByteBuffer) throws {
    var bytes = bytes
    while bytes.readableBytes > 0 {
      let count = bytes.withUnsafeReadableBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw TimedOut() }
      bytes.moveReaderIndex(forwardBy: count)
    }
  }

  func send(_ id: Int, _ call: NodeCall) throws {
    try send(try LocalRequest(id: id, call: call).frame())
  }

  /// The next message; nil at the end.
  func next<Message: LocalMessage>(_ type: Message.Type) throws -> Message? {
    try received.withLock { received in
      let decoder = FrameDecoder(limit: Message.limit)
      while true {
        if let frame = try decoder.decode(buffer: &received) {
          guard let message = Message(frame) else { throw KithError.malformedControl }
          return message
        }
        let count = received.writeWithUnsafeMutableBytes(minimumWritableBytes: 65_536) {
          max(0, recv(descriptor, $0.baseAddress, $0.count, 0))
        }
        if count == 0 { return nil }
      }
    }
  }

  /// Takes all bytes until the end. Reading the messages among them may then take its time.
  func takeAll() throws {
    received.withLock { received in
      while true {
        let count = received.writeWithUnsafeMutableBytes(minimumWritableBytes: 65_536) {
          max(0, recv(descriptor, $0.baseAddress, $0.count, 0))
        }
        if count == 0 { return }
      }
    }
  }

  func reply() throws -> LocalReply {
    guard let reply = try next(LocalReply.self) else { throw TimedOut() }
    return reply
  }

  /// Says hello and waits for the answer.
  func hello(attaches: Bool = true) throws {
    try send(1, .hello(version: LocalLimits.version, attaches: attaches))
    guard case .answer(.hello) = try reply().content else { throw TimedOut() }
  }

  /// Whether the other end has closed the connection.
  var isEnded: Bool {
    get throws {
      while try next(LocalReply.self) != nil {}
      return true
    }
  }
}

/// A node by hand: a test reads what a program sends, and says what it likes.
final class ScriptedNode: Sendable {
  let directory: TestDirectory
  private let listener: Int32
  private let connection = Mutex<RawEnd?>(nil)

  init(at path: String? = nil) throws {
    directory = try TestDirectory()
    listener = try LocalSocket.listen(at: path ?? directory.child("control"))
    // A program that does not come fails the test.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(listener) }

  /// Takes a program in.
  func greet() throws {
    let end = try greetAnother()
    connection.withLock { $0 = end }
  }

  /// Takes in one more connection, which the caller reads and writes.
  func greetAnother() throws -> RawEnd {
    let end = try meetAnother()
    try greet(end)
    return end
  }

  /// Takes one more connection, and leaves its hello without an answer.
  func meetAnother() throws -> RawEnd {
    let end = RawEnd(accept(listener, nil, nil))
    guard case .hello = try end.next(LocalRequest.self)?.call else { throw TimedOut() }
    return end
  }

  /// Answers a hello.
  func greet(_ end: RawEnd) throws {
    let hello = NodeAnswer.hello(
      account: AccountID(try Digest256(repeatElement(UInt8(7), count: 32))), device: .test)
    try end.send(try LocalReply(id: 1, content: .answer(hello)).frame())
  }

  /// Takes a program in and tells it what the store shows.
  func attach(
    shows entries: [KithCore.Operation] = [], onEnd: @escaping @Sendable () -> Void = {}
  ) async throws -> Program {
    let path = directory.path
    async let attached = blocking { try Program(attachedTo: path, onEnd: onEnd) }
    try await blocking {
      try self.greet()
      let open = try self.next()
      guard case .open(.test, _) = open.call else { throw TimedOut() }
      try self.say(open.id, .answer(.values(entries)))
    }
    return try await attached
  }

  private var end: RawEnd {
    get throws {
      guard let end = connection.withLock({ $0 }) else { throw TimedOut() }
      return end
    }
  }

  /// The next request; it blocks.
  func next() throws -> LocalRequest {
    guard let request = try end.next(LocalRequest.self) else { throw TimedOut() }
    return request
  }

  func say(_ id: Int, _ content: LocalReply.Content) throws {
    try end.send(try LocalReply(id: id, content: content).frame())
  }

  func say(_ bytes: ByteBuffer) throws { try end.send(bytes) }

  /// Tells the changes of one step.
  func tell(_ changes: KeyValueStore.Change...) throws {
    try say(0, .changes(.test, try changes.map { try LocalChange($0) }))
  }

  /// Ends the connection, as a process does that is killed.
  func hangUp() { connection.withLock { $0 = nil } }

  /// Takes no more programs, and hangs up.
  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    hangUp()
  }
}

/// Counts what happens.
final class Counter: Sendable {
  private let count = Atomic<Int>(0)
  var value: Int { count.load(ordering: .sequentiallyConsistent) }
  func add() { count.add(1, ordering: .sequentiallyConsistent) }
}
