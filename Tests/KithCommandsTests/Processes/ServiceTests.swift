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

/// `kith service` with a `systemctl` that only notes its calls, and a `loginctl` that prints a
/// file: tests may not change the host's services, and most hosts of tests have no systemd.
@Suite("kith service, with a fake systemctl", .timeLimit(.minutes(5)))
struct ServiceCommandTests {
  private let household: Household
  private let environment: [String: String]

  init() throws {
    household = try Household()
    let folder = household.root.appending(path: "bin")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let systemctl = #"""
      #!/bin/sh
      echo "$*" >>"$HOME/calls"
      case "$2" in
      show) test ! -e "$HOME/down" || { echo "no bus"; exit 1; }
        case "$3" in *FragmentPath) test ! -e "$HOME/packaged" || echo "$HOME/packaged" ;; esac ;;
      enable) touch "$HOME/is-enabled" ;;
      restart) touch "$HOME/is-active" ;;
      disable) rm -f "$HOME/is-enabled" "$HOME/is-active" ;;
      is-*) test -e "$HOME/$2" ;;
      esac
      """#
    let loginctl = #"""
      #!/bin/sh
      test "$*" = "show-user $(id -u) --property=Linger --value" && cat "$HOME/lingers"
      """#
    for (name, script) in [("systemctl", systemctl), ("loginctl", loginctl)] {
      let program = folder.appending(path: name)
      try script.write(to: program, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o755], ofItemAtPath: program.path)
    }
    environment = ["PATH": "\(folder.path):/usr/bin:/bin"]
  }

  private var unit: URL {
    household.root.appending(path: ".config/systemd/user/kith.service")
  }

  private func kith(_ arguments: String...) async throws -> KithProcess.Result {
    try await KithProcess.run(arguments, in: household.root, environment: environment)
  }

  private func service(
    _ name: String, _ member: Household.Member, _ more: String...
  ) async throws -> KithProcess.Result {
    try await KithProcess.run(
      ["service", name, "--user", "--json", "--directory", member.directory.path] + more,
      in: household.root, environment: environment)
  }

  @Test func `it is installed, shown and removed`() async throws {
    let alpha = try await household.create("alpha")
    let none = try await service("status", alpha)
    #expect(none.status == 0 && none.output.contains(#""isInstalled": false"#), "\(none)")
    let installed = try await service("install", alpha)
    #expect(installed.status == 0, "\(installed)")
    #expect(installed.talk.contains("loginctl enable-linger"))
    for member in ["isInstalled", "isEnabled", "isRunning"] {
      #expect(installed.output.contains("\"\(member)\": true"), "\(installed)")
    }
    #expect(installed.output.contains(#""isChanged": false"#), "\(installed)")
    let text = try String(contentsOf: unit, encoding: .utf8)
    let program = KithProcess.program.resolvingSymlinksInPath().path
    #expect(
      text.contains("\nExecStart=\(program) run --quiet --directory \(alpha.directory.path)\n"))
    let calls = try String(
      contentsOf: household.root.appending(path: "calls"), encoding: .utf8)
    for call in ["daemon-reload", "enable kith.service", "restart kith.service"] {
      #expect(calls.contains("--user \(call)\n"), "\(calls)")
    }
    // Again, and then not at all.
    #expect(try await service("install", alpha).status == 0)
    let removed = try await service("remove", alpha)
    #expect(removed.status == 0 && removed.output.contains(#""isEnabled": false"#), "\(removed)")
    #expect(!FileManager.default.fileExists(atPath: unit.path))
    #expect(try await service("remove", alpha).status == 0)
  }

  @Test func `a package's unit is used if it is the same, and stays`() async throws {
    let alpha = try await household.create("alpha")
    var same = ServiceUnit(isOfHost: false)
    same.program = KithProcess.program.resolvingSymlinksInPath().path
    same.directory = alpha.directory.path
    let packaged = household.root.appending(path: "packaged")
    try same.text.write(to: packaged, atomically: true, encoding: .utf8)
    let status = try await service("status", alpha)
    #expect(status.output.contains("\"unit\": \"\(packaged.path)\""), "\(status)")
    #expect(status.output.contains(#""isEnabled": false"#), "\(status)")
    let installed = try await service("install", alpha)
    for member in ["isPackaged", "isInstalled", "isEnabled", "isRunning"] {
      #expect(installed.output.contains("\"\(member)\": true"), "\(installed)")
    }
    #expect(!FileManager.default.fileExists(atPath: unit.path))
    let removed = try await service("remove", alpha)
    #expect(removed.status == 0 && removed.output.contains(#""isEnabled": false"#), "\(removed)")
    #expect(FileManager.default.fileExists(atPath: packaged.path))
    // One for another directory is overridden.
    same.directory = "/elsewhere"
    try same.text.write(to: packaged, atomically: true, encoding: .utf8)
    let own = try await service("install", alpha)
    #expect(own.status == 0 && own.output.contains(#""isPackaged": false"#), "\(own)")
    #expect(FileManager.default.fileExists(atPath: unit.path))
  }

  @Test func `a unit that somebody changed stays without force`() async throws {
    let alpha = try await household.create("alpha")
    #expect(try await service("install", alpha).status == 0)
    let changed = try String(contentsOf: unit, encoding: .utf8)
      .replacing("RestartSec=5", with: "RestartSec=60")
    try changed.write(to: unit, atomically: true, encoding: .utf8)
    for name in ["install", "remove"] {
      let refused = try await service(name, alpha)
      #expect(refused.status == CommandStatus.refused.rawValue, "\(refused)")
      #expect(refused.talk.contains("systemctl --user edit kith.service"), "\(refused)")
      #expect(try String(contentsOf: unit, encoding: .utf8) == changed)
    }
    #expect(try await service("install", alpha, "--force").status == 0)
    #expect(ServiceUnit.isUnchanged(try String(contentsOf: unit, encoding: .utf8)))
  }

  @Test func `leaving the last account names the service of its directory`() async throws {
    let (alpha, beta) = (try await household.create("alpha"), try await household.create("beta"))
    #expect(try await service("install", alpha).status == 0)
    for (member, isNamed) in [(beta, false), (alpha, true)] {
      let left = try await kith(
        "account", "leave", "--yes", "--force", "--directory", member.directory.path)
      #expect(left.status == 0, "\(left)")
      let advice = "remove it: kith service remove --user\n"
      #expect(left.talk.contains(advice) == isNamed, "\(left)")
    }
    #expect(FileManager.default.fileExists(atPath: unit.path))
  }

  @Test func `lingering is advised unless it is enabled`() async throws {
    let alpha = try await household.create("alpha")
    for (answer, isAdvised) in [(String?.none, true), ("no\n", true), ("yes\n", false)] {
      let file = household.root.appending(path: "lingers")
      try answer?.write(to: file, atomically: true, encoding: .utf8)
      let installed = try await service("install", alpha)
      #expect(installed.status == 0, "\(installed)")
      #expect(installed.talk.contains("loginctl enable-linger") == isAdvised, "\(installed)")
    }
  }

  @Test(
    .enabled(
      if: geteuid() != 0 || KithProcess.nobody != nil,
      "as root needs setpriv, and a build that others may run"))
  func `without root the host's service is not touched`() async throws {
    // The fake systemctl could note a call.
    chmod(household.root.path, 0o777)
    for name in ["install", "remove"] {
      let refused = try await KithProcess(
        ["service", name, "--system"], in: household.root, environment: environment,
        launcher: KithProcess.nobody ?? []
      ).wait()
      #expect(refused.status == CommandStatus.refused.rawValue, "\(refused)")
      #expect(refused.talk.hasSuffix(": sudo kith service \(name) --system\n"), "\(refused)")
    }
    let calls = household.root.appending(path: "calls").path
    #expect(!FileManager.default.fileExists(atPath: calls))
  }

  @Test func `nothing is written without a device, or if systemd does not answer`() async throws {
    let nobody = household.add("nobody")
    let missing = try await service("install", nobody)
    #expect(missing.status == CommandStatus.directory.rawValue, "\(missing)")
    let alpha = try await household.create("alpha")
    try Data().write(to: household.root.appending(path: "down"))
    let refused = try await service("install", alpha)
    #expect(refused.status == CommandStatus.failure.rawValue, "\(refused)")
    #expect(refused.talk.contains("no bus") && refused.talk.contains("@reboot"), "\(refused)")
    #expect(!FileManager.default.fileExists(atPath: unit.path))
    let status = try await service("status", alpha)
    #expect(status.status == 0 && !status.output.contains("isRunning"), "\(status)")
    let both = try await service("status", alpha, "--system")
    #expect(both.status == CommandStatus.usage.rawValue, "\(both)")
  }

  @Test func `a new account offers it on a terminal, and elsewhere names the command`() async throws
  {
    let silent = try await kith("account", "create", "--directory", household.root.path + "/a")
    #expect(silent.status == 0 && silent.talk.contains("kith service install"), "\(silent)")
    #expect(!FileManager.default.fileExists(atPath: unit.path))
    let terminal = try TestTerminal()
    for (answer, isInstalled) in [("\n", false), ("y\n", true)] {
      let create = try terminal.start(
        ["account", "create", "--directory", household.root.path + "/\(isInstalled)"],
        in: household.root, showsOutput: true, environment: environment)
      try await terminal.type(answer, after: "from now on? [y/N] ")
      #expect(try await create.wait().status == 0, "\(terminal.shown)")
      #expect(FileManager.default.fileExists(atPath: unit.path) == isInstalled)
    }
    #expect(terminal.shown.contains("The node runs"), "\(terminal.shown)")
  }
}
