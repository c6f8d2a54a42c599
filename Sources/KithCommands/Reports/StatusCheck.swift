import ArgumentParser
import Kith
import KithTerminal

/// The verdict of `kith status --check`.
struct StatusCheck: Equatable, Sendable {
  /// Parts of a sentence; empty: all is well.
  private(set) var problems: [String] = []
  private var connection = ""
  private var connected = 0
  private var others = 0

  /// The node could not be asked.
  init(failure: String) { problems = [Self.phrase(failure)] }

  /// `peers`: how many devices must be connected; nil: one, unless there is no other device or a
  /// carrier works. `behind`: how many milliseconds a device may lack something; nil: any time.
  init(_ status: NodeStatus, peers: Int?, behind: UInt64?, nowMilliseconds now: UInt64) {
    guard status.account != nil else {
      problems = ["nobody is signed in here; \(CommonOptions.signingIn)"]
      return
    }
    others = status.others.count
    connected = status.others.count { status.isConnected(to: $0, now: now) }
    connection =
      others == 0 ? "the account has no other device yet" : status.connection(now: now)
    problems = status.problems.map { Self.phrase($0.description) }
    let wanted = peers ?? (others == 0 || status.hasCarrier ? 0 : 1)
    if connected < wanted {
      problems.append(connection + (wanted > 1 ? ", and \(wanted) are wanted" : ""))
    }
    for carrier in status.carriers {
      guard let problem = carrier.problem else { continue }
      problems.append("\(Columns.printable(carrier.location)): \(Self.phrase(problem))")
    }
    if let behind {
      let late = status.others.compactMap { device in
        device.behindSinceMilliseconds.map { (name: device.name, since: $0) }
      }
      .filter { now > $0.since && now - $0.since >= behind }
      .sorted { ($0.since, $0.name) < ($1.since, $1.name) }
      if !late.isEmpty {
        let names = late.map { device in
          let since = Format.ago(device.since, now: now)
          return "\(Columns.printable(device.name, limit: 64)) (since \(since))"
        }
        problems.append("behind: \(names.joined(separator: ", "))")
      }
    }
  }

  /// A sentence as a part of another.
  private static func phrase(_ sentence: String) -> String {
    let text = Columns.printable(sentence)
    return String(text.hasSuffix(".") ? text.dropLast() : text[...])
  }

  func text(_ style: Style) -> String {
    problems.isEmpty
      ? style(.good, "ok: \(connection)")
      : style(.bad, "problem: \(problems.joined(separator: "; "))")
  }

  var document: Document {
    .versioned([
      "connected": .int(connected), "healthy": .bool(problems.isEmpty), "others": .int(others),
      "problems": .strings(problems),
    ])
  }
}

/// A time as people write it: `90s`, `30m`, `1h` or `2d`; a number alone counts seconds.
struct TimeSpan: ExpressibleByArgument, Equatable {
  let milliseconds: UInt64

  init?(argument: String) {
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    let seconds: UInt64? =
      switch argument.dropFirst(digits.count) {
      case "", "s": 1
      case "m", "min": 60
      case "h": 3_600
      case "d": 86_400
      default: nil
      }
    // Up to 10 years.
    guard let seconds, let number = UInt64(digits), number <= 315_360_000 / seconds else {
      return nil
    }
    milliseconds = number * seconds * 1_000
  }
}
