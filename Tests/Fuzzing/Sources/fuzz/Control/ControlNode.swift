import Dispatch
import Foundation
import KithCrypto
import Logging
import NIOCore
import NIOEmbedded

@testable import Kith
@testable import KithCore
@testable import KithStorage

/// A node for every input: the product's, but for its storage, which is in memory. The directory
/// that a node cannot do without is made once, and never written to again.
final class ControlNode: Sendable {
  static let shared = ControlNode()

  private let opened: OpenDevice
  private let snapshot: Snapshot
  private let account: AccountID
  /// A session wants one, and answers without it. Never closed, so one for all.
  private let channel = EmbeddedChannel()

  private init() {
    do {
      let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("kith-fuzz-\(UUID().uuidString)").path
      _ = try Node.createAccount(directory: directory, name: "fuzz")
      opened = try Storage.open(directory, nil)
      snapshot = try Storage.load(opened)
      account = try Storage.account(of: opened)
      // What is open is enough.
      try FileManager.default.removeItem(atPath: directory)
    } catch {
      fatalError("no directory: \(error)")
    }
  }

  /// Answers requests as one connection of a running node would, one after the other.
  func answer(_ requests: [ControlRequest]) {
    let done = DispatchSemaphore(value: 0)
    Task {
      do {
        try await answerAll(requests)
      } catch {
        fatalError("not answered: \(error)")
      }
      done.signal()
    }
    done.wait()
  }

  private func answerAll(_ requests: [ControlRequest]) async throws {
    let storage = MemoryStorage(snapshot)
    let process = ProcessID(try Digest128([UInt8](repeating: 1, count: 16)))
    let engine = try Engine(
      account: account, keys: opened.keys, process: process, storage: storage,
      logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
    let node = Node(
      configuration: Node.Configuration(directory: opened.directory), engine: engine,
      opened: opened, staticPeers: [])
    let (writer, sink) = NIOAsyncChannelOutboundWriter<ByteBuffer>.makeTestingWriter()
    let session = ControlSession(node: node, channel: channel, outbound: writer)
    var lines = sink.makeAsyncIterator()
    for request in requests {
      // These wait for others.
      if request.operation?.isLasting == true { continue }
      try await session.answer(request)
      guard var line = await lines.next() else { fatalError("no answer") }
      let bytes = line.readBytes(length: line.readableBytes) ?? []
      require(bytes.last == 0x0a && bytes.count { $0 == 0x0a } == 1, "not one line")
      require(bytes.count <= ControlLimits.lineBytes, "a line beyond the limit")
      let response = ControlJSON.decode(
        ControlResponse.self, ByteBuffer(bytes: bytes.dropLast()))
      require(response?.id == request.id && response?.isLast == true, "another request's answer")
      guard request.operation == .commit, response?.error == nil else { continue }
      try await check(request, node)
    }
    writer.finish()
  }

  /// What was committed is there.
  private func check(_ request: ControlRequest, _ node: Node) async throws {
    var last: [Key: String?] = [:]
    for write in request.writes ?? [] { last[Key(write.key)] = .some(write.value) }
    for (key, text) in last {
      let shown = try await node.value(forKey: key.text, in: request.store ?? "")
      let value = try text.map { try ControlEntry.value($0) }
      require(shown == value, "what was committed is not there")
    }
  }
}
