internal import Foundation
import Kith
import KithCarriersTesting
import KithTestSupport
import Synchronization
import Testing

/// A server of storage, as a process of its own on a free port of loopback. `Servers/launch.py` starts
/// it, and ends it at the latest when this process ends.
final class StorageServer: Sendable {
  enum Kind: String {
    case apache, nginx, rclone, wsgidav, moto, nanio, faults

    /// The program that must be there, and where to get it.
    private var program: (name: String, package: String) {
      switch self {
      case .apache: ("apache2", "apache2-bin")
      case .nginx: ("../lib/nginx/modules/ngx_http_dav_ext_module.so", "libnginx-mod-http-dav-ext")
      case .rclone: ("rclone", "rclone")
      case .wsgidav: ("wsgidav", "wsgidav")
      case .moto: ("moto_server", "moto[s3,server]")
      case .nanio: ("nanio", "nanio")
      case .faults: ("python3", "python3")
      }
    }

    var isThere: Bool { isInstalled(program.name) }
  }

  let ports: [String: Int]
  /// Its folder: certificates, and `data` with the objects.
  let folder: String
  // The script ends before its directory is removed.
  private let script: ScriptProcess
  private let directory: TestDirectory

  init(_ kind: Kind) async throws {
    directory = try TestDirectory()
    // Servers that root starts run as another user.
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o711], ofItemAtPath: directory.path)
    script = try await ScriptProcess(
      "launch.py", [kind.rawValue, directory.child("server"), ScriptProcess.venv])
    let reply = script.reply
    guard let ports = reply.ports, let folder = reply.folder else {
      throw NotInTime(
        "\(kind.rawValue) cannot run: \(reply.missing ?? "") \(reply.failed ?? "")")
    }
    self.ports = ports
    self.folder = folder
  }

  /// Ends the server at once. Returns when it has ended.
  func kill() async throws { try await script.command("kill") }

  func url(_ port: String = "plain", _ path: String = "", host: String = "127.0.0.1") -> String {
    "http\(port == "plain" ? "" : "s")://\(host):\(ports[port] ?? 0)/\(path)"
  }
}

/// Names of places that no other test uses.
func freshPlace() -> String {
  let digits = UUID().uuidString.filter(\.isHexDigit).lowercased()
  return "kith1/\(digits)"
}

/// Whether a program is there: in the path, among those for root, or among the servers of PyPI.
func isInstalled(_ program: String) -> Bool {
  let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
  var folders = path.split(separator: ":").map(String.init) + ["/usr/sbin"]
  // Their Python may be one that only its owner may run.
  if FileManager.default.isExecutableFile(atPath: "\(ScriptProcess.venv)/bin/python") {
    folders.append("\(ScriptProcess.venv)/bin")
  }
  return folders.contains { FileManager.default.fileExists(atPath: "\($0)/\(program)") }
}

/// A script of `Servers`, which answers with a line of JSON when it is ready and after each command. It
/// ends, with all that it started, when its input ends: at the latest with this process.
final class ScriptProcess: Sendable {
  struct Reply: Decodable, Sendable {
    var ports: [String: Int]?
    var folder: String?
    var missing: String?
    var failed: String?
  }

  static let tests = URL(filePath: #filePath).deletingLastPathComponent()
  /// Where `Tests/carrier-servers` puts the servers of PyPI.
  static let venv = tests.appending(path: "../../.build/carrier-servers").standardized.path

  /// The script's first answer.
  let reply: Reply
  private let process: Mutex<Process>
  private let input: FileHandle
  private let output: FileHandle

  /// Starts a script and waits for its first answer, without holding up one of Swift's threads.
  init(_ script: String, _ arguments: [String]) async throws {
    let process = Process()
    let (input, output) = (Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments =
      ["python3", Self.tests.appending(path: "Servers/\(script)").path] + arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    self.input = input.fileHandleForWriting
    self.output = output.fileHandleForReading
    reply = try await Self.read(self.output)
    self.process = Mutex(process)
  }

  /// Gives a command and waits for its answer.
  func command(_ command: String) async throws {
    try input.write(contentsOf: Data("\(command)\n".utf8))
    _ = try await Self.read(output)
  }

  deinit {
    try? input.close()
    process.withLock { $0.waitUntilExit() }
  }

  private static func read(_ output: FileHandle) async throws -> Reply {
    let line = await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        var line = Data()
        while let byte = try? output.read(upToCount: 1), byte != Data("\n".utf8) { line += byte }
        continuation.resume(returning: line)
      }
    }
    return try JSONDecoder().decode(Reply.self, from: line)
  }
}

/// Expects a failure with a code.
func expectFailure(
  _ code: CarrierFailure.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ operation: () async throws -> Void
) async {
  let failure = await failure(of: operation)
  #expect(
    failure?.code == code, "\(failure?.message ?? "no failure")", sourceLocation: sourceLocation)
}

/// The failure of an operation; nil if it succeeds, or fails otherwise.
func failure(of operation: () async throws -> Void) async -> CarrierFailure? {
  do {
    try await operation()
    return nil
  } catch {
    return error as? CarrierFailure
  }
}

/// Runs a suite, with an issue for each promise that was not kept.
func expectConformance(
  _ conformance: CarrierConformance, sourceLocation: SourceLocation = #_sourceLocation
) async {
  for violation in await conformance.run() {
    Issue.record(violation, sourceLocation: sourceLocation)
  }
}
