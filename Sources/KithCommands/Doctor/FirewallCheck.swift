import FoundationEssentials
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
    /// Whether the kernel uses rules of nftables or iptables; nil: that cannot be seen.
    var hasKernelRules: Bool? = false
  }

  func look(at target: DiagnosisTarget) -> Sight {
    func text(_ path: String) -> String? { try? InputText.text(of: path) }
    var sight = Sight()
    let port = target.effectivePort
    sight.ufw = text("/etc/ufw/ufw.conf").map(Self.isSwitchedOn)
    sight.ufwAllows = text("/etc/ufw/user.rules").map { Self.ufwAllows(port, rules: $0) }
    let manager = FileManager.default
    let processes = (try? manager.contentsOfDirectory(atPath: "/proc")) ?? []
    sight.isFirewalldRunning = processes.contains { process in
      Int32(process) != nil && text("/proc/\(process)/comm") == "firewalld"
    }
    let zones = "/etc/firewalld/zones"
    sight.firewalldAllows = (try? manager.contentsOfDirectory(atPath: zones)).map { names in
      names.contains { name in
        text("\(zones)/\(name)").map { Self.firewalldAllows(port, zone: $0) } ?? false
      }
    }
    var system = utsname()
    uname(&system)
    let release = withUnsafeBytes(of: &system.release) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    sight.hasKernelRules = Self.hasRules(
      modules: text("/proc/modules"), builtIn: text("/lib/modules/\(release)/modules.builtin"))
    return sight
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    let port = target.effectivePort
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
    guard sight.hasKernelRules != false else {
      return [finding(.good, tried: tried, seen: "none in use")]
    }
    return [
      finding(
        sight.hasKernelRules == nil ? .unknown : .note, tried: tried,
        seen: sight.hasKernelRules == nil
          ? "whether this kernel has rules cannot be seen here"
          : "the kernel has rules that only root may read",
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
        let index = words.firstIndex(of: "--dport"), index + 1 < words.count
      else { return false }
      let bounds = words[index + 1].split(separator: ":").compactMap { UInt16($0) }
      guard let first = bounds.first, let last = bounds.last, first <= last else { return false }
      return (first...last).contains(port) && words.contains("tcp")
    }
  }

  static func firewalldAllows(_ port: UInt16, zone: String) -> Bool {
    zone.split(separator: "<").contains {
      $0.hasPrefix("port ") && $0.contains("port=\"\(port)\"") && $0.contains("tcp")
    }
  }

  private static let modules = ["nf_tables", "ip_tables", "ip6_tables"]

  /// In `/proc/modules`, the third word of a line is the module's number of users. One that is built
  /// in (`modules.builtin`) is not there, and shows none. Nil: unknown.
  static func hasRules(modules text: String?, builtIn: String?) -> Bool? {
    guard let text else { return nil }
    var isListed = false
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 2, let users = Int(words[2]), modules.contains(String(words[0])) else {
        continue
      }
      if users > 0 { return true }
      isListed = true
    }
    if isListed { return false }
    // Without the list of those built in, nothing is known either, unless the kernel loads modules.
    guard let builtIn else { return text.isEmpty ? nil : false }
    let isBuiltIn = modules.contains { builtIn.contains("/\($0).ko") }
    return isBuiltIn ? nil : false
  }
}
