internal import Foundation

/// The memory of a process, as the kernel counts it.
package struct ResidentMemory {
  /// `VmRSS` of `/proc/PID/status`.
  package let resident: Int
  /// `RssAnon`: data that the process wrote. The rest is mostly shared code, which the kernel can
  /// drop.
  package let anonymous: Int

  /// Nil if the process has ended.
  package init?(of process: Int32) {
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
