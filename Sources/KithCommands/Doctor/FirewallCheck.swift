import Foundation
import Glibc

/// The firewalls of this host, as far as any user may see them.
struct FirewallCheck: Check {
  static let name = "firewall"

  struct Sight: Equatable, Sendable {
    /// Nil: not installed.
    var ufw: Bool?
    /// Nil: its rules cannot be read.
    var ufwAllows: Bool?
    var isFirewalldRunning = false
    /// Nil: its zones cannot be read.
    var firewalldAllows: Bool?
    /// Whether the kernel uses rules of nftables or iptables.
    var hasKernelRules = false
  }

  func look(at patient: Patient) -> Sight {
    func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
    var sight = Sight()
    let port = patient.effectivePort
    sight.ufw = text("/etc/ufw/ufw.conf").map(Self.isSwitchedOn)
    sight.ufwAllows = text("/etc/ufw/user.rules").map { Self.ufwAllows(port, rules: $0) }
    let manager = FileManager.default
    let processes = (try? manager.contentsOfDirectory(atPath: "/proc")) ?? []
    sight.isFirewalldRunning = processes.contains { process in
      Int32(process) != nil && text("/proc/\(process)/comm") == "firewalld\n"
    }
    let zones = "/etc/firewalld/zones"
    sight.firewalldAllows = (try? manager.contentsOfDirectory(atPath: zones)).map { names in
      names.contains { name in
        text("\(zones)/\(name)").map { Self.firewalldAllows(port, zone: $0) } ?? false
      }
    }
    sight.hasKernelRules = text("/proc/modules").map(Self.hasRules) ?? false
    return sight
  }

  func findings(_ sight: Sight, of patient: Patient) -> [Finding] {
    let port = patient.effectivePort
    var findings: [Finding] = []
    if sight.ufw == true {
      findings.append(
        judged(sight.ufwAllows, by: "ufw", port, command: "sudo ufw allow \(port)/tcp"))
    }
    if sight.isFirewalldRunning {
      findings.append(
        judged(
          sight.firewalldAllows, by: "firewalld", port,
          command: "sudo firewall-cmd --permanent --add-port=\(port)/tcp && sudo firewall-cmd "
            + "--reload"))
    }
    guard findings.isEmpty else { return findings }
    let tried = "looked for ufw, firewalld and rules of the kernel"
    guard sight.hasKernelRules else { return [finding(.good, tried: tried, seen: "none in use")] }
    return [
      finding(
        .note, tried: tried, seen: "the kernel has rules that only root may read",
        advice:
          "where others do not reach this device: sudo nft list ruleset (or iptables -S), and "
          + "let TCP port \(port) in")
    ]
  }

  private func judged(
    _ isAllowed: Bool?, by firewall: String, _ port: UInt16, command: String
  ) -> Finding {
    let tried = "looked for TCP port \(port) in the rules of \(firewall)"
    switch isAllowed {
    case true?: return finding(.good, tried: tried, seen: "it is let in")
    case false?:
      return finding(
        .note, tried: tried, seen: "no rule names it: other hosts may not reach this device",
        advice: command)
    case nil:
      return finding(
        .note, tried: tried, seen: "\(firewall) is on, and only root may read its rules",
        advice: "where others do not reach this device: \(command)")
    }
  }

  /// Reads `ufw.conf`.
  static func isSwitchedOn(_ text: String) -> Bool {
    text.split(separator: "\n").contains { $0.lowercased().filter { $0 != " " } == "enabled=yes" }
  }

  /// Reads `user.rules`; counts rules for any address.
  static func ufwAllows(_ port: UInt16, rules: String) -> Bool {
    rules.split(separator: "\n").contains { line in
      let words = line.split(separator: " ")
      guard words.first == "-A", words.last == "ACCEPT",
        let place = words.firstIndex(of: "--dport"), place + 1 < words.count
      else { return false }
      let bounds = words[place + 1].split(separator: ":").compactMap { UInt16($0) }
      guard let first = bounds.first, let last = bounds.last, first <= last else { return false }
      return (first...last).contains(port) && words.contains("tcp")
    }
  }

  static func firewalldAllows(_ port: UInt16, zone: String) -> Bool {
    zone.split(separator: "<").contains {
      $0.hasPrefix("port ") && $0.contains("port=\"\(port)\"") && $0.contains("tcp")
    }
  }

  /// In `/proc/modules`, the third word of a line is the module's number of users.
  static func hasRules(_ modules: String) -> Bool {
    modules.split(separator: "\n").contains { line in
      let words = line.split(separator: " ")
      guard words.count > 2, let users = Int(words[2]) else { return false }
      return ["nf_tables", "ip_tables", "ip6_tables"].contains(words[0]) && users > 0
    }
  }
}
