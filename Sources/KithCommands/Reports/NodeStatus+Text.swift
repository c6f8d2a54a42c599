import Kith
package import KithCore
import KithTerminal

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
  /// Says how many writes made while nobody was signed in did not get into the account; nil: none.
  package var unshownNotice: String? {
    let refusing = stores.filter { $0.refusals > 0 }
    guard !refusing.isEmpty else { return nil }
    let count = Format.count(refusing.reduce(0) { $0 + $1.refusals }, "write")
    let commands = refusing.map { store in
      let name = store.identifier.rawValue
      return name == StoreOptions.usual ? "kith unshown" : "kith unshown --store \(name)"
    }
    return
      "\(count) of this host did not get into the account, which has values of the same keys, or "
      + "no room. See: \(commands.map { Columns.printable($0) }.joined(separator: ", "))"
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
    if !authorsOverLimit.isEmpty {
      remarks.append(
        "too much of \(authorsOverLimit.map(name).sorted().joined(separator: ", ")): the newest is "
          + "not taken")
    }
    if !policyMismatches.isEmpty {
      remarks.append(
        "limits differ on \(policyMismatches.map(name).sorted().joined(separator: ", "))")
    }
    return remarks.joined(separator: ", ")
  }
}
