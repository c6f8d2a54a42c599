import Foundation

/// The memory of a process, as the kernel counts it.
struct ResidentMemory {
  /// All resident bytes (`VmRSS` of `/proc/PID/status`).
  let resident: Int
  /// Those of them that no file backs (`RssAnon`): what the process itself has written. The rest is
  /// mostly code, which the kernel shares between processes and drops when memory is short.
  let anonymous: Int

  /// The memory of a process; nil where it is gone.
  init?(of process: Int32) {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    else { return nil }
    func bytes(_ name: String) -> Int? {
      status.split(separator: "\n").first { $0.hasPrefix(name) }
        .flatMap { Int($0.filter(\.isWholeNumber)) }.map { $0 * 1_024 }
    }
    guard let resident = bytes("VmRSS:"), let anonymous = bytes("RssAnon:") else { return nil }
    self.resident = resident
    self.anonymous = anonymous
  }
}
