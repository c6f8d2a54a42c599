import FoundationEssentials
import Glibc
import Kith
import KithStorage
import KithTerminal

/// The service that runs a node: its unit's file, and systemd's word on it.
struct NodeService {
  let unit: ServiceUnit
  /// The file that the tool writes.
  private let ownPath: String

  init(_ unit: ServiceUnit, environment: [String: String]) {
    self.unit = unit
    let home = environment["HOME"] ?? URL.homeDirectory.path
    let named = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    ownPath =
      (unit.isOfHost ? "/etc/systemd/system" : "\(named ?? home + "/.config")/systemd/user")
      + "/\(unit.name)"
  }

  /// The unit's file: the tool's, else a package's, else the one to write.
  var path: String { packagedPath ?? ownPath }

  /// Whether the tool's own file is there. It overrides a package's.
  var isOwn: Bool { FileManager.default.fileExists(atPath: ownPath) }

  /// Whether systemd uses the file of a package.
  var isPackaged: Bool { packagedPath != nil }

  var isInstalled: Bool { isOwn || isPackaged }

  private var packagedPath: String? {
    guard !isOwn else { return nil }
    let answer = systemctl(["show", "--property=FragmentPath", "--value", unit.name])
    return answer.isDone && answer.output.hasPrefix("/") ? answer.output : nil
  }

  /// Whether somebody changed the tool's file.
  var isChanged: Bool {
    guard isOwn else { return false }
    let file = try? String(contentsOfFile: ownPath, encoding: .utf8)
    return !(file.map(ServiceUnit.isUnchanged) ?? false)
  }

  /// Whether a package brought the very unit that the tool would write.
  private var isSuppliedByPackage: Bool {
    guard let packagedPath else { return false }
    return (try? String(contentsOfFile: packagedPath, encoding: .utf8)) == unit.text
  }

  /// Nil if the service manager does not answer.
  var state: (isEnabled: Bool, isRunning: Bool)? {
    guard answer.isDone else { return nil }
    return (
      systemctl(["is-enabled", unit.name]).isDone, systemctl(["is-active", unit.name]).isDone
    )
  }

  /// Whether systemd is known to start the node of this directory.
  var startsNode: Bool {
    guard state?.isEnabled ?? isOwn,
      let file = try? String(contentsOfFile: path, encoding: .utf8)
    else { return false }
    return unit.hasSameNode(as: file)
  }

  /// Whether the person's service is known to run also while the person is not logged in.
  var lingers: Bool {
    let arguments = ["show-user", "\(geteuid())", "--property=Linger", "--value"]
    return Self.run("loginctl", arguments) == (true, "yes")
  }

  private var answer: (isDone: Bool, output: String) { systemctl(["show", "--property=Version"]) }

  // MARK: Changes

  /// Writes the unit, unless a package brought the same; enables it, and starts or restarts it.
  func install(force: Bool, starts: Bool) throws {
    let answer = answer
    guard answer.isDone else {
      throw CommandFailure(
        .failure,
        "systemd does not answer here (\(answer.output)), and nothing was done. Have another service "
          + "manager run this, or cron at @reboot: \(unit.command)")
    }
    if !isSuppliedByPackage {
      try checkUnchanged(force)
      try FileManager.default.createDirectory(
        atPath: Files.parent(of: ownPath), withIntermediateDirectories: true)
      try unit.file.write(toFile: ownPath, atomically: true, encoding: .utf8)
    }
    try demand(["daemon-reload"])
    try demand(["enable", unit.name])
    if starts { try demand(["restart", unit.name]) }
  }

  /// Stops and disables the unit, and removes the tool's file; a package's stays.
  func remove(force: Bool) throws {
    guard isInstalled else { return }
    try checkUnchanged(force)
    let isManaged = answer.isDone
    if isManaged { try demand(["disable", "--now", unit.name]) }
    guard isOwn else { return }
    try FileManager.default.removeItem(atPath: ownPath)
    if isManaged { try demand(["daemon-reload"]) }
  }

  private func checkUnchanged(_ force: Bool) throws {
    guard isChanged, !force else { return }
    throw CommandFailure(
      .refused,
      "\(ownPath): somebody changed it, and nothing was done. Move the changes to "
        + "`systemctl \(unit.isOfHost ? "" : "--user ")edit \(unit.name)`, and pass --force")
  }

  private func demand(_ arguments: [String]) throws {
    let result = systemctl(arguments)
    guard !result.isDone else { return }
    throw CommandFailure(
      .failure, "systemctl \(arguments.joined(separator: " ")): \(result.output)")
  }

  private func systemctl(_ arguments: [String]) -> (isDone: Bool, output: String) {
    Self.run("systemctl", (unit.isOfHost ? [] : ["--user"]) + arguments)
  }

  private static func run(
    _ program: String, _ arguments: [String]
  ) -> (isDone: Bool, output: String) {
    do throws(CommandFailure) {
      let (status, output) = try HostProgram.run([program] + arguments)
      return (status == 0, output)
    } catch {
      return (false, error.description)
    }
  }
}

/// A service manager such as systemd: sd_notify(3). Each message is one datagram to the Unix-domain
/// socket in `NOTIFY_SOCKET`; the service ignores its loss.
struct ServiceManager: Sendable {
  static let variable = "NOTIFY_SOCKET"

  private let path: [UInt8]

  /// Nil if no manager wants messages.
  init?(environment: [String: String]) {
    guard let name = environment[Self.variable], name.hasPrefix("/") || name.hasPrefix("@") else {
      return nil
    }
    var bytes = Array(name.utf8)
    // An abstract address: unix(7).
    if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
    path = bytes
  }

  func tellReady(_ status: String) { tell("READY=1\nSTATUS=\(status)\n") }

  func tellStopping() { tell("STOPPING=1\nSTATUS=stopping\n") }

  private func tell(_ text: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let size = socklen_t(
      (MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2) + path.count + (path[0] == 0 ? 0 : 1))
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, size)
      }
    }
  }
}

extension CommonOptions {
  /// The service of this directory's node.
  func service(isOfHost: Bool) throws -> NodeService {
    let environment = ProcessInfo.processInfo.environment
    var unit = ServiceUnit(isOfHost: isOfHost)
    unit.program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path
    if isOfHost {
      if let directory { unit.directory = Self.exactly(directory).path }
      try Self.checkHost(unit)
    } else {
      // Services have neither KITH_DIRECTORY nor XDG_DATA_HOME.
      let usual = Self.directory(
        option: nil, environment: environment.filter { $0.key == "HOME" })
      unit.directory = directoryURL.path == usual.path ? "" : directoryURL.path
    }
    return NodeService(unit, environment: environment)
  }

  private static func checkHost(_ unit: ServiceUnit) throws(CommandFailure) {
    let name = unit.directory.dropFirst(ServiceUnit.hostDirectories.count)
    guard unit.directory.hasPrefix(ServiceUnit.hostDirectories), !name.isEmpty,
      name.allSatisfy({ $0.isLetter || $0.isNumber || "-_.".contains($0) }), !name.hasPrefix(".")
    else {
      throw CommandFailure(
        .refused,
        "\(unit.directory): the host's node has its directory right below "
          + "\(ServiceUnit.hostDirectories); leave --directory out, or pass --user")
    }
  }

  /// Ends the commands that make a device: installs the person's service if the person agrees, or
  /// says how to start the node.
  func offerService() {
    do {
      if let service = try wantedService() {
        try service.install(force: false, starts: true)
        return console.talk(
          service.lingers
            ? "The node runs, also while you are not logged in."
            : "The node runs while you are logged in. To have it run always: loginctl enable-linger"
        )
      }
    } catch {
      console.warn(CommandFailure(error)?.message ?? "\(error)")
    }
    console.talk("Start the node with: kith run, or as a service of systemd: kith service install")
  }

  /// Ends the commands that remove an account: names the services whose node has none left.
  func warnOfServices() {
    for isOfHost in [false, true] {
      guard let service = try? service(isOfHost: isOfHost),
        !isOfHost || service.unit.directory == directoryURL.path, service.startsNode
      else { continue }
      console.talk(
        "No account is left here, so the service \(service.unit.name) fails when it starts again. "
          + "Unless you sign in, remove it: "
          + (isOfHost ? "sudo kith service remove --system" : "kith service remove --user"))
    }
  }

  /// Nil unless there is a terminal, systemd, no passphrase and no enabled unit yet, and the person
  /// agrees.
  private func wantedService() throws -> NodeService? {
    guard !json, !quiet, Terminal.hasInput, Terminal.hasTalk,
      try !Node.isUnderPassphrase(directory: accountDirectory())
    else { return nil }
    let service = try service(isOfHost: false)
    guard !service.isOwn, service.state?.isEnabled == false,
      Confirmation.isGiven("Run the node as a service of systemd from now on?", console)
    else { return nil }
    return service
  }
}
