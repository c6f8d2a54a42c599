import Foundation
import Glibc

@testable import KithTerminal
@testable import KithTestSupport

/// Measures a node with a full store, in a separate process of this executable (``KithBench``).
enum MemoryBench {
  private static let limit = Duration.seconds(30)

  static func memory(directory: URL, store: String) async throws -> ResidentMemory {
    let process = Process()
    process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = [
      "run", "--directory", directory.path, "--store", store, "--listen", "127.0.0.1", "--port",
      "0",
    ]
    let talk = Pipe()
    process.standardError = talk
    process.standardOutput = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    defer {
      process.terminate()
      process.waitUntilExit()
    }
    let pid = process.processIdentifier
    let end = ContinuousClock.now + limit
    // Log lines may come before the line with this word.
    var heard = ""
    while !heard.contains("ready") {
      let bytes = talk.fileHandleForReading.availableData
      guard !bytes.isEmpty, ContinuousClock.now < end else {
        throw CommandFailure(.failure, "the bench's own `kith run` did not get ready")
      }
      heard += String(decoding: bytes, as: UTF8.self)
    }
    // Wait, so that the work of starting counts too.
    try await Task.sleep(for: .seconds(1))
    guard let memory = ResidentMemory(of: pid) else {
      throw CommandFailure(.failure, "the bench's own `kith run` ended early")
    }
    return memory
  }
}
