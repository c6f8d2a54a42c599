import ArgumentParser
package import Kith
package import KithCore
import KithTerminal

struct StatusReport: Equatable, Sendable {
  var status: NodeStatus
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    var facts = Table()
    if let own = status.devices.first(where: \.isThisDevice) {
      facts.add(fact: "device", "\(Columns.printable(own.name))  \(own.fingerprint)")
    }
    facts.add(
      fact: "account",
      status.account.map { "\($0.hex.prefix(16))" }
        ?? .init("none; writes stay on this host", .warning))
    facts.add(fact: "directory", .init(status.directory))
    facts.add(fact: "node", nodeCell)
    if status.isRunning, status.account != nil {
      facts.add(fact: "peers", peersCell)
      facts.add(fact: "discovery", discoveryCell)
    }
    facts.add(
      fact: "clock",
      status.clock.isSynchronised
        ? .init("synchronised", .good) : .init("not synchronised by the kernel", .warning))
    if !status.keepsHistory { facts.add(fact: "history", "off; keep it with: kith run --history") }
    var parts = [facts.text(style)]
    if status.account == nil {
      parts.append("Nobody is signed in: \(CommonOptions.signingIn).")
    }
    for problem in status.problems {
      parts.append(
        style.paragraph(.bad, "problem: \(Columns.sentence(problem.description))"))
    }
    let carriers = CarriersReport(status: status, nowMilliseconds: nowMilliseconds).text(style)
    if !carriers.isEmpty { parts.append(carriers) }
    let stores = StoresReport(status: status, showsEmpty: true).text(style)
    if !stores.isEmpty { parts.append(stores) }
    return parts.joined(separator: "\n\n")
  }

  private var nodeCell: Table.Cell {
    guard let processID = status.processID else {
      return status.account == nil
        ? Table.Cell("not running") : Table.Cell("not running; start it with: kith run", .warning)
    }
    let suffix =
      status.listening.isEmpty
      ? "" : ", listening on \(status.listening.joined(separator: ", "))"
    return Table.Cell("running as process \(processID)\(suffix)", .good)
  }

  private var peersCell: Table.Cell {
    guard !status.others.isEmpty else {
      return Table.Cell("no other device yet; add one with: kith invite")
    }
    let isAlone = !status.others.contains { status.isConnected(to: $0, now: nowMilliseconds) }
    return Table.Cell(status.connection(now: nowMilliseconds), isAlone ? .warning : .good)
  }

  private var discoveryCell: Table.Cell {
    guard let discovery = status.discovery else { return Table.Cell("off") }
    var interfaces: [String] = []
    for link in discovery.links where link.problem == nil && !interfaces.contains(link.interface) {
      interfaces.append(link.interface)
    }
    guard !interfaces.isEmpty else {
      return Table.Cell("no network here takes multicast; name peers with --peer", .warning)
    }
    let heard = Format.count(discovery.neighbours.count, "device")
    guard discovery.links.contains(where: { $0.problem == nil && !$0.isLoopback }) else {
      return Table.Cell("\(heard) seen on this host alone, and no other network", .warning)
    }
    return Table.Cell("\(heard) seen on \(interfaces.joined(separator: ", "))")
  }

  var document: Document { .versioned(.of(status)) }
}

extension NodeStatus {
  /// A longer silence is unusual: a device sends something at least every 30 s. In milliseconds.
  private static let longestPause: UInt64 = 40_000

  var others: [Device] { members.filter { !$0.isThisDevice } }

  func name(of device: DeviceID, limit: Int = .max) -> String {
    Columns.printable(plainName(of: device), limit: limit)
  }

  /// As the device gave it, which may hold control characters.
  func plainName(of device: DeviceID) -> String {
    devices.first { $0.id == device }?.name ?? String(device.hex.prefix(16))
  }

  func session(with device: Device) -> Peer? { peers.last { $0.device == device.id } }

  /// Milliseconds since a connected device was last heard, if unusually many.
  func silence(of device: Device, now: UInt64) -> UInt64? {
    guard session(with: device) != nil, let seen = device.lastSeenMilliseconds else { return nil }
    let silence = now - min(seen, now)
    return silence > Self.longestPause ? silence : nil
  }

  /// Whether it exchanges stores, and was heard lately.
  func isConnected(to device: Device, now: UInt64) -> Bool {
    session(with: device)?.isExchanging == true && silence(of: device, now: now) == nil
  }

  /// The carriers in use. Those after them are above the limit, and named so that a person removes
  /// some.
  var usedCarriers: ArraySlice<Carrier> { carriers.prefix(Limits.carriers) }

  /// Whether storage for which no device has to be met can be used.
  var hasCarrier: Bool { carriers.contains { $0.problem == nil } }

  /// How many of the other devices are connected.
  func connection(now: UInt64) -> String {
    guard isRunning else { return "no node runs, so no device is connected; start it: kith run" }
    let connected = others.count { isConnected(to: $0, now: now) }
    return "\(Format.count(connected)) of \(Format.count(others.count)) connected"
  }

  func state(of device: Device, now: UInt64) -> (text: String, tone: Style.Tone) {
    if device.isThisDevice { return ("this device", .plain) }
    if session(with: device)?.isExchanging == true {
      guard let silence = silence(of: device, now: now) else { return ("connected", .good) }
      return ("silent for \(silence / 1_000) s", .warning)
    }
    guard device.isConnected else { return ("away", .faint) }
    return clock.differences.contains { $0.device == device.id }
      ? ("clocks differ", .bad) : ("connected, not exchanging", .warning)
  }
}

extension NodeStatus {
  /// The stores that this device knows to have only in part. If there are any, no other device is
  /// known to have everything.
  package var storesInPart: [StoreIdentifier] { stores.filter(\.isInPart).map(\.identifier) }

  /// Says how many writes made while nobody was signed in did not get into the account; nil: none.
  package var unshownNotice: String? {
    let refusing = stores.filter { $0.refusals > 0 }
    guard !refusing.isEmpty else { return nil }
    let count = Format.count(refusing.reduce(0) { $0 + $1.refusals }, "write")
    let commands = refusing.map { StoreOptions.command("kith unshown", of: $0.identifier.rawValue) }
    return
      "\(count) of this host did not get into the account, which has values of the same keys, or "
      + "is over quota. See: \(commands.map { Columns.sentence($0) }.joined(separator: ", "))"
  }
}

extension NodeStatus.Problem {
  var isOfClocks: Bool { code == .clocksDiffer || code == .dataAhead }
}

extension NodeStatus.Device {
  package var document: Document {
    .object(["fingerprint": .string(fingerprint), "id": .string(id.hex), "name": .string(name)])
  }
}

extension NodeStatus.Store {
  private static let most = Limits.authorBytes

  var missingText: String {
    guard let missing, missing.rows > 0 else { return "it is not known how much" }
    return Format.count(missing.rows, "damaged row")
  }

  /// Whether this device is known to lack some of it: of one author, a device keeps less in stores
  /// that no program on its host has opened.
  var isInPart: Bool { !isOpenedHere && !authorsOverLimit.isEmpty }

  func partText(_ name: (DeviceID) -> String) -> String {
    "in part: the rest of \(authorNames(name)) comes once a program here opens it"
  }

  private func authorNames(_ name: (DeviceID) -> String) -> String {
    authorsOverLimit.map(name).sorted().joined(separator: ", ")
  }

  func remarks(_ name: (DeviceID) -> String) -> String {
    var remarks: [String] = []
    if missing != nil { remarks.append("damaged, missing (\(missingText))") }
    if drafts > 0 { remarks.append("\(Format.count(drafts, "write")) to publish") }
    if hiddenKeys > 0 { remarks.append("\(Format.count(hiddenKeys)) hidden") }
    if refusals > 0 { remarks.append("\(Format.count(refusals)) refused") }
    if quarantined > 0 { remarks.append("\(Format.count(quarantined)) quarantined") }
    if isOverLimit {
      remarks.append("this device wrote more than others keep of one (\(Format.bytes(Self.most)))")
    }
    if isInPart {
      remarks.append(partText(name))
    } else if !authorsOverLimit.isEmpty {
      remarks.append("over the limit of one device: \(authorNames(name))")
    }
    if !policyMismatches.isEmpty {
      remarks.append(
        "limits differ on \(policyMismatches.map(name).sorted().joined(separator: ", "))")
    }
    return remarks.joined(separator: ", ")
  }
}

/// The verdict of `kith status --check`.
struct StatusCheck: Equatable, Sendable {
  /// Parts of a sentence; empty: all is well.
  private(set) var problems: [String] = []
  private var connection = ""
  private var connected = 0
  /// Nil: not known.
  private var others: Int?
  /// If it was asked which devices are behind: the names of those of which nothing was heard since the
  /// node started, so that nobody knows. Devices that are switched off are no problem.
  private var unheard: [String] = []

  /// The node could not be asked; the status is that of its directory, if known.
  init(failures: [String], _ status: NodeStatus? = nil) {
    problems = failures.map(Columns.phrase)
    others = status?.account == nil ? nil : status?.others.count
  }

  /// `peers`: how many devices must be connected; nil: one, unless there is no other device or a
  /// carrier works. `behind`: how many milliseconds a device may lack something; nil: any time.
  init(_ status: NodeStatus, peers: Int?, behind: UInt64?, nowMilliseconds now: UInt64) {
    guard status.account != nil else {
      problems = ["nobody is signed in here; \(CommonOptions.signingIn)"]
      return
    }
    let others = status.others.count
    self.others = others
    connected = status.others.count { status.isConnected(to: $0, now: now) }
    connection =
      others == 0 ? "the account has no other device yet" : status.connection(now: now)
    problems = status.problems.map { Columns.phrase($0.description) }
    let wanted = peers ?? (others == 0 || status.hasCarrier ? 0 : 1)
    if connected < wanted {
      problems.append(connection + (wanted > 1 ? ", and \(wanted) are wanted" : ""))
    }
    for carrier in status.usedCarriers {
      guard let problem = carrier.problem else { continue }
      problems.append("\(Columns.printable(carrier.location)): \(Columns.phrase(problem))")
    }
    if let behind {
      unheard = status.others.filter { $0.missing == nil && $0.behindSinceMilliseconds == nil }
        .map(\.name).sorted()
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

  func text(_ style: Style) -> String {
    (problems.isEmpty
      ? style(.good, "ok: \(connection)")
      : style(.bad, "problem: \(problems.joined(separator: "; "))"))
      + (unheard.isEmpty ? "" : style(.warning, "; \(unheardText)"))
  }

  private var unheardText: String {
    let names = unheard.prefix(Self.mostNames).map { Columns.printable($0, limit: 64) }
    let rest = unheard.count - names.count
    return "not known since the node started: \(names.joined(separator: ", "))"
      + (rest > 0 ? " and \(Format.count(rest)) more" : "")
  }

  private static let mostNames = 10

  var document: Document {
    .versioned([
      "connected": .int(connected), "healthy": .bool(problems.isEmpty),
      "others": others.map { .int($0) },
      "problems": .strings(problems), "unheard": unheard.isEmpty ? nil : .strings(unheard),
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

extension Columns {
  /// A sentence as a part of another.
  static func phrase(_ sentence: String) -> String {
    let text = self.sentence(sentence)
    return String(text.hasSuffix(".") ? text.dropLast() : text[...])
  }
}
