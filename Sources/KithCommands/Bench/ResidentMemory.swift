import Foundation

/// The memory of a process, as counted by the kernel.
struct ResidentMemory {
  /// All resident bytes (`VmRSS` of `/proc/PID/status`).
  let resident: Int
  /// The resident bytes without a file (`RssAnon`): data that the process wrote. The rest is mostly
  /// shared code, which the kernel can drop.
  let anonymous: Int

  /// Reads the memory of a process; nil if it has ended.
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
