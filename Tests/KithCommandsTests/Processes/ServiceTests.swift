import Foundation
import Glibc
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Under a service manager", .timeLimit(.minutes(5)))
struct ServiceTests {
  private static let folder = URL(filePath: #filePath)
    .appending(path: "../../../../Examples/systemd").standardized

  private static func units() throws -> [URL] {
    try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "service" }.sorted { $0.path < $1.path }
  }

  /// A socket that takes what services tell.
  private final class Manager {
    private let descriptor: Int32

    /// Binds a path, or, if the name begins with `@`, a name in no directory.
    init(_ name: String) throws {
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      var bytes = Array(name.utf8)
      if name.hasPrefix("@") { bytes[0] = 0 }
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
      let size = socklen_t(2 + bytes.count + (name.hasPrefix("@") ? 0 : 1))
      let descriptor = descriptor
      let isBound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) == 0 }
      }
      guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit { close(descriptor) }

    /// The next datagram; nil: none yet.
    func next() -> String? {
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
      return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }
  }

  @Test(arguments: [false, true])
  func `a manager is told when the node is ready and when it stops`(isAbstract: Bool) async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let path = household.root.path + "/notify"
    let name = isAbstract ? "@" + path : path
    let manager = try Manager(name)
    member.environment = ["NOTIFY_SOCKET": name]
    try await household.start(member)
    var told: String?
    try await eventually("the manager to be told") {
      told = manager.next()
      return told != nil
    }
    #expect(told == "READY=1\nSTATUS=listening on \(member.address)\n")
    let stopped = try #require(try await household.stop(member))
    #expect(stopped.status == 0)
    #expect(manager.next() == "STOPPING=1\nSTATUS=stopping\n")
  }

  @Test func `a manager that is gone, or named oddly, does not hold the node up`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for name in ["/nowhere/socket", "@" + String(repeating: "x", count: 200), "relative", ""] {
      member.environment = ["NOTIFY_SOCKET": name]
      try await household.start(member)
      #expect(try await household.stop(member)?.status == 0)
    }
  }

  @Test(arguments: [false, true])
  func `the example units are those that the tool writes`(isOfHost: Bool) throws {
    let unit = ServiceUnit(isOfHost: isOfHost)
    let example = try String(contentsOf: Self.folder.appending(path: unit.name), encoding: .utf8)
    #expect(unit.text == example)
    #expect(ServiceUnit.isUnchanged(unit.file) && !ServiceUnit.isUnchanged(example))
    #expect(!ServiceUnit.isUnchanged(unit.file.replacing("RestartSec=5", with: "RestartSec=6")))
    #expect(!ServiceUnit.isUnchanged(unit.file + "X=1\n"))
  }

  @Test func `a unit names program and directory as systemd reads them`() {
    var unit = ServiceUnit(isOfHost: false)
    unit.program = "/opt/50% off/kith"
    unit.directory = "/data/a\"b"
    #expect(unit.command == #""/opt/50%% off/kith" run --quiet --directory "/data/a\"b""#)
    var host = ServiceUnit(isOfHost: true)
    host.directory = "/var/lib/other"
    #expect(host.text.contains("\nStateDirectory=other\n"))
    #expect(!host.text.contains("/var/lib/kith"))
    let typed = host.preparation.split(separator: "\n").map { $0.prefix(9) }
    #expect(typed == ["  useradd", "  install", "  runuser"])
  }

  @Test func `the commands of the example units are commands of kith`() throws {
    let units = try Self.units()
    #expect(units.count == 2)
    for unit in units {
      let text = try String(contentsOf: unit, encoding: .utf8)
      let commands = text.split(separator: "\n").filter { $0.hasPrefix("ExecStart=") }
      #expect(commands.count == 1)
      for command in commands {
        let words = command.dropFirst("ExecStart=".count).split(separator: " ").map(String.init)
        #expect(words[0].hasSuffix("/kith"))
        #expect(try KithCommand.parseAsRoot(Array(words.dropFirst())) is RunCommand)
      }
      // Otherwise systemd would wait for ever, or not at all.
      #expect(text.contains("\nType=notify\n"))
    }
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/systemd-analyze")))
  func `the example units are valid`() throws {
    let household = try Household()
    for unit in try Self.units() {
      // It wants to see the program.
      let text = try String(contentsOf: unit, encoding: .utf8)
        .replacing("/usr/local/bin/kith", with: KithProcess.program.path)
      let copy = household.root.appending(path: unit.lastPathComponent)
      try text.write(to: copy, atomically: true, encoding: .utf8)
      try Shell.run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", copy.path)
    }
  }
}
