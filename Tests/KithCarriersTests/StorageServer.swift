internal import Foundation
import KithTestSupport

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
