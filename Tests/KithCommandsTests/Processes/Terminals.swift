import Foundation
import Glibc
import KithTestSupport

/// A terminal that a test types on.
final class TestTerminal {
  private let master: Int32
  /// Held open, so that what is typed waits there also while no process has the terminal.
  private var slave: Int32 = -1
  /// The file that a process opens to have it.
  let path: String
  private var shownBytes: [UInt8] = []

  init() throws {
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
    // ioctl_tty(2): TIOCSPTLCK and TIOCGPTN, which Swift's Glibc does not name.
    var (lock, number): (Int32, UInt32) = (0, 0)
    guard master >= 0, ioctl(master, 0x4004_5431, &lock) == 0,
      ioctl(master, 0x8004_5430, &number) == 0
    else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    path = "/dev/pts/\(number)"
    slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
  }

  deinit {
    close(slave)
    close(master)
  }

  /// All that was shown on it so far, what was typed included if it was echoed.
  var shown: String {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = read(master, &bytes, bytes.count)
      guard count > 0 else { break }
      shownBytes.append(contentsOf: bytes[..<count])
    }
    return String(decoding: shownBytes, as: UTF8.self)
  }

  /// Types, once something is shown.
  func type(_ text: String, after prompt: String) async throws {
    try await eventually("the terminal to show \(prompt)") { shown.hasSuffix(prompt) }
    type(text)
  }

  /// Types at once.
  func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(master, bytes, bytes.count)
  }

  /// Starts a command that has it as its terminal: setsid(1). The command's standard output and
  /// standard error go to files; with `showsOutput` the terminal shows them, without colours.
  func start(
    _ arguments: [String], in directory: URL, showsOutput: Bool = false,
    environment: [String: String] = [:]
  ) throws -> KithProcess {
    let shell = ["/bin/sh", "-c", #"NO_COLOR=1 exec "$0" "$@" >/dev/tty 2>&1"#]
    return try KithProcess(
      command: ["/usr/bin/setsid", "--ctty"] + (showsOutput ? shell : [])
        + [KithProcess.program.path] + arguments, in: directory, inputFile: path,
      environment: environment)
  }
}
