import Foundation
import Testing

/// Real processes under attack, one attack after another: what each test measures would suffer from
/// its neighbours.
@Suite(.serialized, .timeLimit(.minutes(30)))
enum Faults {
  /// A number that the environment may give, such as `KITH_KILLS`.
  static func number(_ name: String, or usual: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
  }
}

/// Commands of the system, such as `mount` and `ip`.
enum Shell {
  struct Failed: Error, CustomStringConvertible {
    let description: String
  }

  /// Runs a command to its end, and gives what it printed; throws what it complained of.
  @discardableResult
  static func run(_ command: String...) throws -> String { try run(command) }

  @discardableResult
  static func run(_ command: [String]) throws -> String {
    let directory = FileManager.default.temporaryDirectory
    let file = directory.appending(path: "\(Household.prefix)shell-\(UUID().uuidString)")
    let (output, talk) = (
      file.appendingPathExtension("out"), file.appendingPathExtension("err")
    )
    defer { for file in [output, talk] { try? FileManager.default.removeItem(at: file) } }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let process = try ChildProcess(
      ["/usr/bin/env"] + command, environment: ["PATH": path + ":/usr/sbin:/sbin"], in: directory,
      output: output, talk: talk)
    process.waitUntilExit()
    guard process.status == 0 else {
      let words = try String(contentsOf: talk, encoding: .utf8)
      throw Failed(description: "\(command.joined(separator: " ")): \(words)")
    }
    return try String(contentsOf: output, encoding: .utf8)
  }
}

/// A file system that a test mounted. A ``Household`` that is given it unmounts it.
final class Mount {
  let path: String
  private var isMounted = true

  private init(path: String) { self.path = path }

  /// A file system in memory of so many bytes.
  static func temporary(_ directory: URL, bytes: Int) throws -> Mount {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try Shell.run(
      "mount", "-t", "tmpfs", "-o", "size=\(bytes),mode=0700", "tmpfs", directory.path)
    return Mount(path: directory.path)
  }

  /// A file system in a file.
  static func image(_ file: URL, at directory: URL) throws -> Mount {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try Shell.run("mount", "-o", "loop", file.path, directory.path)
    return Mount(path: directory.path)
  }

  func remount(_ options: String) throws {
    try Shell.run("mount", "-o", "remount,\(options)", path)
  }

  func unmount() {
    guard isMounted else { return }
    isMounted = false
    do { try Shell.run("umount", path) } catch { _ = try? Shell.run("umount", "-l", path) }
  }

  deinit { unmount() }
}
