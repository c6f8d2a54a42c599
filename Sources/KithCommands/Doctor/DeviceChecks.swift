import CLinux
import Glibc
import Kith
import KithCore
import KithStorage
import KithTerminal

struct DirectoryCheck: Check {
  static let name = "directory"

  struct Sight: Sendable {
    /// Whether a passphrase protects the secrets; nil if unknown.
    var isUnderPassphrase: Bool?
    /// The paths of damaged databases that were rebuilt.
    var damaged: [String] = []
  }

  func look(at target: DiagnosisTarget) -> Sight {
    Sight(
      isUnderPassphrase: try? Node.isUnderPassphrase(directory: target.directory),
      damaged: DeviceDirectory.damagedDatabases(target.directory))
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    accounts(of: target)
      + state(sight.isUnderPassphrase, of: target)
      + findings(of: [target.pendingAdoption].compactMap(\.self))
      + target.incompleteAccounts.map { account, file in
        finding(
          .problem, tried: "looked for the files of the account \(account.prefix(16))",
          seen: "\(file) is missing or empty, so nobody can sign in to it",
          advice: "put it back from a backup; if there is none, join the account anew, and revoke "
            + "the lost device there")
      }
      + sight.damaged.map { path in
        finding(
          .note, tried: "looked for damaged databases",
          seen: "the database was damaged and made anew; the damaged one is \(path)",
          advice: "check the disk; once nothing is missing (kith status), remove that file")
      }
  }

  private func accounts(of target: DiagnosisTarget) -> [Finding] {
    guard let error = target.accountsError else { return [] }
    return [
      finding(
        .problem, tried: "looked who is signed in", seen: "that is not known, so no command works",
        advice: Columns.sentence(error.description))
    ]
  }

  private func state(_ isUnderPassphrase: Bool?, of target: DiagnosisTarget) -> [Finding] {
    let lock =
      switch isUnderPassphrase {
      case true?: "secrets under a passphrase"
      case false?: "secrets under no passphrase"
      case nil: "secrets not looked at"
      }
    switch target.device {
    case .running(let report):
      let owner = report.processID.map { " (process \($0))" } ?? ""
      return [
        finding(
          .good, tried: "asked the node of \(target.directory)",
          seen: "it runs\(owner), and found modes, owners and structure sound at its start; \(lock)"
        )
      ] + signedOut(target) + problems(report)
    case .opened(let report):
      return [
        finding(
          .good, tried: "opened \(target.directory)",
          seen: "modes, owners and structure are sound; \(lock)"),
        noNode(
          .note, advice: target.isSignedOut || report.isRevoked ? nil : "start it: kith run"),
      ] + signedOut(target) + problems(report)
    case .none where target.isSignedOut: return signedOut(target)
    case .none where target.accountsError != nil: return []
    case .none:
      return [
        finding(
          .note, tried: "opened \(target.directory)", seen: "it holds no device",
          advice: "kith account create, or kith join")
      ]
    case .locked(let error):
      return [
        finding(
          .unknown, tried: "opened \(target.directory)", seen: error.description,
          advice: "to look into it: kith doctor --passphrase-file FILE"),
        // Only the directory knows whether it is alone.
        noNode(.problem, advice: "if the account has other devices, start it: kith run"),
      ]
    case .failed(let error): return [unusable(target, error), noNode(.note)]
    case .silent(let error): return [unusable(target, error)]
    }
  }

  private func noNode(_ verdict: Finding.Verdict, advice: String? = nil) -> Finding {
    finding(
      verdict, tried: "asked for a node in the directory", seen: "none runs", advice: advice)
  }

  private func unusable(_ target: DiagnosisTarget, _ error: KithError) -> Finding {
    finding(
      .problem, tried: "opened \(target.directory)", seen: "it cannot be used",
      advice: Columns.sentence(error.description))
  }

  private func signedOut(_ target: DiagnosisTarget) -> [Finding] {
    guard target.isSignedOut else { return [] }
    return [
      finding(
        .note, tried: "looked who is signed in",
        seen: "nobody: writes stay on this host", advice: CommonOptions.signingIn)
    ]
  }

  private func problems(_ report: NodeStatus) -> [Finding] {
    findings(of: report.problems.filter { !$0.isOfClocks }) + fullList(report)
  }

  /// The account's own stores count, and are not shown.
  private func fullList(_ report: NodeStatus) -> [Finding] {
    guard report.stores.count + Self.ownStores >= Limits.stores else { return [] }
    return [
      finding(
        .note, tried: "counted the stores",
        seen: "\(report.stores.count), and a device keeps at most \(Limits.stores), with the "
          + "account's own",
        advice: "no name can be removed: write to the stores that are there; programs can share "
          + "one, with prefixes of keys")
    ]
  }

  /// `kith.carriers` and `kith.dconf`.
  private static let ownStores = 2
}

struct VersionsCheck: Check {
  static let name = "versions"

  func look(at target: DiagnosisTarget) {}

  func findings(_ sight: Void, of target: DiagnosisTarget) -> [Finding] {
    let own = Software.version
    let others = (target.report?.others ?? []).compactMap { device in
      device.software.map { (name: device.name, version: $0) }
    }
    let different = others.filter { $0.version != own }
    guard different.isEmpty else {
      return different.map { name, version in
        finding(
          .note, tried: "asked \(Columns.printable(name, limit: 64)) for its version",
          seen: "kith \(Columns.printable(version, limit: 32)); this is kith \(own)",
          advice: "use the newer one on both, when it suits")
      }
    }
    return [
      finding(
        .good, tried: "asked this program and \(Format.count(others.count, "other device"))",
        seen: "kith \(own)")
    ]
  }
}

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
