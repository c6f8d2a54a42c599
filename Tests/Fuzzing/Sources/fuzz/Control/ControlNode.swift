import Dispatch
import Foundation
import Logging
import NIOCore

@testable import Kith
@testable import KithCore
@testable import KithCrypto
@testable import KithStorage

/// A node for every input: the product's, but for its storage, which is in memory. The directory
/// that a node cannot do without is made once, and never written to again.
final class ControlNode: Sendable {
  static let shared = ControlNode()

  private let opened: OpenDevice
  private let snapshot: Snapshot
  private let account: AccountID

  private init() {
    do {
      let directory = FileManager.default.temporaryDirectory
        .appendingPathComponent("kith-fuzz-\(UUID().uuidString)").path
      _ = try Node.createAccount(directory: directory, name: "fuzz")
      opened = try DeviceStorage.open(directory, nil)
      snapshot = try DeviceStorage.load(opened)
      account = try DeviceStorage.account(of: opened)
      // The open files are enough.
      try FileManager.default.removeItem(atPath: directory)
    } catch {
      fatalError("no directory: \(error)")
    }
  }

  /// Answers requests as one connection of a running node would, one after the other.
  func answer(_ requests: [LocalRequest]) {
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

  private func answerAll(_ requests: [LocalRequest]) async throws {
    let storage = MemoryStorage(snapshot)
    let process = ProcessID(try Digest128([UInt8](repeating: 1, count: 16)))
    let engine = try Engine(
      account: account, keys: opened.keys, process: process, storage: storage,
      logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() })
    let node = Node(
      configuration: Node.Configuration(directory: opened.directory), engine: engine,
      opened: opened, staticPeers: [])
    for request in requests {
      // These wait for others.
      if request.call.isLasting { continue }
      let content: LocalReply.Content
      do throws(KithError) {
        content = .answer(try await node.perform(request.call, as: .attached(1)) { _ in false })
      } catch {
        content = .failure(error)
      }
      let frame = try LocalReply(id: request.id, content: content).frame()
      let decoder = FrameDecoder(limit: LocalReply.limit)
      var bytes = frame
      let reply = try decoder.decode(buffer: &bytes).flatMap { LocalReply($0) }
      require(reply?.id == request.id && bytes.readableBytes == 0, "a reply is not read back")
      guard case .commit(let store, let operations, _) = request.call, case .answer = content else {
        continue
      }
      // It is there.
      let shown = try await node.values(in: store)
      for (key, value) in operations.values {
        require(shown[key] == value, "a committed value is not there")
      }
    }
  }
}
