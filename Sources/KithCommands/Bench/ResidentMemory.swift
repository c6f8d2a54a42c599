import Foundation

/// The memory of a process, as the kernel counts it.
enum ResidentMemory {
  /// The resident bytes of a process (`VmRSS` of `/proc/PID/status`); nil where it is gone.
  static func bytes(of process: Int32) -> Int? {
    guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    else {
      return nil
    }
    for line in status.split(separator: "\n") where line.hasPrefix("VmRSS:") {
      let digits = line.filter(\.isWholeNumber)
      return Int(digits).map { $0 * 1_024 }
    }
    return nil
  }
}
