import CLinux
import Glibc
import Kith
import KithCore
import KithTerminal

struct ClockCheck: Check {
  static let name = "clock"

  struct Sight: Equatable, Sendable {
    /// Whether the kernel reports the clock as synchronised.
    var isSynchronised: Bool
    /// How far the device's files are in the future.
    var filesAheadMilliseconds: Int64 = 0
  }

  func look(at target: DiagnosisTarget) -> Sight {
    var ahead: Int64 = 0
    for name in ["secrets", "kith.sqlite", "kith.sqlite-wal"] {
      var status = stat()
      guard lstat("\(target.directory)/\(name)", &status) == 0 else { continue }
      let written = Int64(status.st_mtim.tv_sec) * 1_000
      ahead = max(ahead, written - Int64(clamping: target.nowMilliseconds))
    }
    return Sight(
      isSynchronised: kith_clock_is_synchronised() != 0, filesAheadMilliseconds: ahead)
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    var findings = [
      sight.isSynchronised
        ? finding(.good, tried: "asked the kernel", seen: "the clock is synchronised")
        : finding(
          .note, tried: "asked the kernel", seen: "the clock is not synchronised",
          advice: "let the system keep it: timedatectl set-ntp true (or chrony, ntpd); in a "
            + "container, on its host")
    ]
    if sight.filesAheadMilliseconds > Limits.clockDifferenceMilliseconds {
      findings.append(
        finding(
          .problem, tried: "compared it with the device's files",
          seen: "they were written in the future, "
            + NodeStatus.clockText(sight.filesAheadMilliseconds),
          advice: "the clock is behind, or was ahead when they were written: set it right, see "
            + "timedatectl"))
    }
    let problems = (target.report?.problems ?? []).filter(\.isOfClocks)
    guard problems.isEmpty else { return findings + self.findings(of: problems) }
    let offsets = (target.report?.peers ?? []).filter(\.isExchanging)
      .map(\.clockOffsetMilliseconds.magnitude)
    if let most = offsets.max() {
      findings.append(
        finding(
          .good,
          tried: "compared it with \(Format.count(offsets.count, "connected device"))",
          seen: "they differ by \(Format.count(Int(clamping: most))) ms at most"))
    }
    return findings
  }
}
