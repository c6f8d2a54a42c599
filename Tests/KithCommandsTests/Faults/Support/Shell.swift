import Foundation

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
    let process = Process()
    let (output, talk) = (Pipe(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    process.environment = ["PATH": path + ":/usr/sbin:/sbin"]
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = talk
    try process.run()
    // Short commands: what they say fits into a pipe.
    process.waitUntilExit()
    let printed = try output.fileHandleForReading.readToEnd() ?? Data()
    let said = try talk.fileHandleForReading.readToEnd() ?? Data()
    guard process.terminationStatus == 0 else {
      let words = String(decoding: said, as: UTF8.self)
      throw Failed(description: "\(command.joined(separator: " ")): \(words)")
    }
    return String(decoding: printed, as: UTF8.self)
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
