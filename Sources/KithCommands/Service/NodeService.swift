import Foundation
import Glibc
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
        atPath: (ownPath as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
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
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let output = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = output
    do {
      try process.run()
    } catch {
      return (false, error.localizedDescription)
    }
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: bytes, as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    return (process.terminationStatus == 0, text)
  }
}
