import Kith
import KithTerminal

extension NodeStatus {
  /// The longest normal silence, in milliseconds: a device sends something at least every 30 s.
  private static let longestPause: UInt64 = 40_000

  /// The members other than this device.
  var others: [Device] { members.filter { !$0.isThisDevice } }

  func name(of device: DeviceID, limit: Int = .max) -> String {
    let name = devices.first { $0.id == device }?.name ?? String(device.hex.prefix(16))
    return Columns.printable(name, limit: limit)
  }

  /// Returns the latest session with a device.
  func session(with device: Device) -> Peer? { peers.last { $0.device == device.id } }

  /// Returns the time since a connected device was last heard, in milliseconds, if that is longer
  /// than normal.
  func silence(of device: Device, now: UInt64) -> UInt64? {
    guard session(with: device) != nil, let seen = device.lastSeenMilliseconds else { return nil }
    let silence = now - min(seen, now)
    return silence > Self.longestPause ? silence : nil
  }

  /// Returns whether stores are exchanged with a device, as far as is known.
  func isInTouch(with device: Device, now: UInt64) -> Bool {
    session(with: device)?.isExchanging == true && silence(of: device, now: now) == nil
  }

  /// Returns a device's state in a word or two, and its tone.
  func state(of device: Device, now: UInt64) -> (text: String, tone: Style.Tone) {
    if device.isThisDevice { return ("this device", .plain) }
    if session(with: device)?.isExchanging == true {
      guard let silence = silence(of: device, now: now) else { return ("in touch", .good) }
      return ("silent for \(silence / 1_000) s", .warning)
    }
    return device.isConnected ? ("connected, not exchanging", .warning) : ("away", .faint)
  }

  /// Removes the data about the device of the local stores, which is in no account of a person.
  mutating func showLocalStores() {
    account = nil
    device = nil
    devices = []
  }
}

extension NodeStatus.Device {
  /// The device as reports on one device name it.
  var document: Document {
    .object(["fingerprint": .string(fingerprint), "id": .string(id.hex), "name": .string(name)])
  }
}

extension NodeStatus.Store {
  /// How much is missing, for people.
  var missingText: String {
    guard let missing, missing.changeSets > 0 else { return "it is not known how much" }
    return "\(Humane.count(missing.entries, "write")) of "
      + Humane.count(missing.changeSets, "change set")
  }

  /// Short remarks for people; `name` gives the names of devices.
  func remarks(_ name: (DeviceID) -> String) -> String {
    var remarks: [String] = []
    if missing != nil { remarks.append("damaged, missing (\(missingText))") }
    if drafts > 0 { remarks.append("\(Humane.count(drafts, "write")) to publish") }
    if hiddenKeys > 0 { remarks.append("\(Humane.count(hiddenKeys)) hidden") }
    if refusals > 0 { remarks.append("\(Humane.count(refusals)) refused") }
    if quarantined > 0 { remarks.append("\(Humane.count(quarantined)) quarantined") }
    if !policyMismatches.isEmpty {
      remarks.append(
        "limits differ on \(policyMismatches.map(name).sorted().joined(separator: ", "))")
    }
    return remarks.joined(separator: ", ")
  }
}
