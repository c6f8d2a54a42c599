import Foundation
import Glibc
import Kith
import KithNetwork

struct PortCheck: Check {
  static let name = "port"

  struct Owner: Equatable, Sendable {
    var process: Int32
    var program: String
  }

  enum Sight: Equatable, Sendable {
    /// The directory's node listens on these addresses.
    case listening([String])
    /// The node is running without listening.
    case silent
    case free
    /// Another process listens; nil if the system does not show it.
    case taken(Owner?)
    /// The port cannot be listened on for another reason.
    case refused(NetworkFailure)
  }

  func look(at target: DiagnosisTarget) async -> Sight {
    if target.isRunning, let report = target.report {
      return report.listening.isEmpty ? .silent : .listening(report.listening)
    }
    guard let failure = await NetworkFailure.listening(port: target.port) else { return .free }
    return failure.reason == .portTaken
      ? .taken(ListeningSockets.owner(ofPort: target.port)) : .refused(failure)
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    let tried = "tried to listen on TCP port \(target.port)"
    switch sight {
    case .listening(let addresses):
      return [
        finding(
          .good, tried: "asked the node where it listens",
          seen: addresses.joined(separator: ", "))
      ]
    case .silent:
      return [
        finding(
          .note, tried: "asked the node where it listens",
          seen: "nowhere: no other device can connect to it",
          advice: "let the others listen, or start it with --listen or without")
      ]
    case .free: return [finding(.good, tried: tried, seen: "it is free")]
    case .taken(let owner):
      let who = owner.map { "process \($0.process) (\($0.program)) has it" } ?? "somebody has it"
      return [
        finding(
          .problem, tried: tried, seen: who,
          advice: (owner == nil ? "see who: sudo ss -ltnp 'sport = :\(target.port)'; " : "")
            + "stop that one, or run the node on another: kith run --port 0")
      ]
    case .refused(let failure):
      return [
        finding(
          .problem, tried: tried, seen: "\(failure)",
          advice: failure.reason == .forbidden
            ? "ports below 1024 are root's: kith run --port 4114" : "kith run --listen ADDRESS")
      ]
    }
  }
}

/// proc(5), `/proc/net/tcp`.
enum ListeningSockets {
  /// The kernel's number for listening.
  private static let listenState = "0A"

  /// `text` is that of `/proc/net/tcp` or `tcp6`.
  static func inodes(ofPort port: UInt16, in text: String) -> [UInt64] {
    text.split(separator: "\n").dropFirst().compactMap { line in
      let fields = line.split(separator: " ")
      guard fields.count > 9, fields[3] == listenState,
        let local = fields[1].split(separator: ":").last, UInt16(local, radix: 16) == port
      else { return nil }
      return UInt64(fields[9])
    }
  }

  /// Nil if no process listens, or it is not visible to this user. Tries three times: both tables
  /// change while they are read, and rows may be skipped.
  static func owner(ofPort port: UInt16) -> PortCheck.Owner? {
    for _ in 0..<3 {
      if let owner = currentOwner(ofPort: port) { return owner }
    }
    return nil
  }

  private static func currentOwner(ofPort port: UInt16) -> PortCheck.Owner? {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].compactMap {
      try? String(contentsOfFile: $0, encoding: .utf8)
    }
    let wanted = Set(
      tables.flatMap { inodes(ofPort: port, in: $0) }.map { "socket:[\($0)]" })
    guard !wanted.isEmpty else { return nil }
    let manager = FileManager.default
    for entry in (try? manager.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let process = Int32(entry) else { continue }
      let descriptors = "/proc/\(process)/fd"
      for descriptor in (try? manager.contentsOfDirectory(atPath: descriptors)) ?? [] {
        let target = try? manager.destinationOfSymbolicLink(atPath: "\(descriptors)/\(descriptor)")
        if let target, wanted.contains(target) {
          let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
          return PortCheck.Owner(
            process: process,
            program: name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown")
        }
      }
    }
    return nil
  }
}
