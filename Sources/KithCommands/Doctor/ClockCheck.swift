import CLinux
import Foundation
import Glibc
import Kith
import KithTerminal

struct ClockCheck: Check {
  static let name = "clock"

  /// The tolerated difference, in milliseconds (`Docs/Protocol.md`, "Clocks").
  static let tolerance: UInt64 = 60_000

  struct Sight: Equatable, Sendable {
    /// Whether the kernel reports the clock as synchronised.
    var isSynchronised: Bool
    /// How far the device's files are in the future.
    var filesAheadMilliseconds: Int64 = 0
  }

  func look(at patient: Patient) -> Sight {
    var ahead: Int64 = 0
    for name in ["secrets", "kith.sqlite", "kith.sqlite-wal"] {
      var status = stat()
      guard lstat("\(patient.directory)/\(name)", &status) == 0 else { continue }
      let written = Int64(status.st_mtim.tv_sec) * 1_000
      ahead = max(ahead, written - Int64(clamping: patient.nowMilliseconds))
    }
    return Sight(
      isSynchronised: kith_clock_is_synchronised() != 0, filesAheadMilliseconds: ahead)
  }

  func findings(_ sight: Sight, of patient: Patient) -> [Finding] {
    var findings = [
      sight.isSynchronised
        ? finding(.good, tried: "asked the kernel", seen: "the clock is synchronised")
        : finding(
          .note, tried: "asked the kernel", seen: "the clock is not synchronised",
          advice: "let the system keep it: timedatectl set-ntp true (or chrony, ntpd); in a "
            + "container, on its host")
    ]
    if sight.filesAheadMilliseconds > Int64(Self.tolerance) {
      findings.append(
        finding(
          .problem, tried: "compared it with the device's files",
          seen: "they were written \(Self.span(sight.filesAheadMilliseconds)) in the future",
          advice: "the clock is behind, or was ahead when they were written: set it right, see "
            + "timedatectl"))
    }
    let report = patient.report
    let offsets = (report?.peers ?? []).map { peer in
      let name = peer.device.flatMap { report?.name(of: $0, limit: 64) }
      return (
        name: name ?? Columns.printable(peer.address, limit: 64),
        offset: peer.clockOffsetMilliseconds
      )
    }
    let wrong = offsets.filter { $0.offset.magnitude > Self.tolerance }
    for (name, offset) in wrong {
      findings.append(
        finding(
          .problem, tried: "compared it with the clock of \(name)",
          seen: "that one is \(Self.span(offset)) \(offset > 0 ? "ahead" : "behind")",
          advice: "set the wrong one of the two right: see timedatectl on both; until then they "
            + "exchange nothing, unless one is synchronised"))
    }
    if wrong.isEmpty, let most = offsets.map(\.offset.magnitude).max() {
      findings.append(
        finding(
          .good,
          tried: "compared it with \(Humane.count(offsets.count, "connected device"))",
          seen: "they differ by \(Self.span(Int64(clamping: most))) at most"))
    }
    return findings
  }

  /// Rounds to the last part: `59 s`, `45 min`, `2 h 50 min`.
  private static func span(_ milliseconds: Int64) -> String {
    let milliseconds = milliseconds.magnitude
    func rounded(to unit: UInt64) -> UInt64 { (milliseconds + unit / 2) / unit }
    func parts(_ count: UInt64, _ each: UInt64, _ one: String, _ other: String) -> String {
      count % each == 0
        ? "\(count / each) \(one)" : "\(count / each) \(one) \(count % each) \(other)"
    }
    return switch milliseconds {
    case ..<10_000: "\(milliseconds) ms"
    case ..<119_500: "\(rounded(to: 1_000)) s"
    case ..<7_170_000: "\(rounded(to: 60_000)) min"
    case ..<172_770_000: parts(rounded(to: 60_000), 60, "h", "min")
    default: parts(rounded(to: 3_600_000), 24, "days", "h")
    }
  }
}
