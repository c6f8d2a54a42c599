internal import KithCore

/// Compares each status with what was logged last, and returns the lines that tell the difference.
/// The core reports the other events (`LogLine`).
struct StatusLog: Sendable {
  private struct Device: Sendable {
    var name: String
    var isConnected = false
    /// How many stores of both sides the other does not accept.
    var leftOut = 0
  }

  private struct Store: Sendable {
    var lastRefusal: UInt64 = 0
    var hiddenKeys = 0
    /// The devices with other limits, and when those were last known to differ.
    var limitsDiffer: [DeviceID: UInt64] = [:]
  }

  /// A new session compares limits after it begins to exchange.
  private static let comparingMilliseconds: UInt64 = 5_000

  /// The state as logged last.
  private var devices: [DeviceID: Device] = [:]
  private var stores: [StoreIdentifier: Store] = [:]
  /// The problem and the number of vanished objects of each carrier, by location.
  private var carriers: [String: (problem: String?, vanished: Int)] = [:]
  /// Addresses that met nobody, by address.
  private var unreached: Set<String> = []
  private var rateLimit = LogRateLimit<DeviceID>()
  private var isBegun = false

  /// The members and stores of the first status are old news. `now` is monotonic, in milliseconds.
  mutating func lines(_ status: NodeStatus, at now: UInt64) -> [LogLine] {
    var lines: [LogLine] = []
    for device in status.devices {
      lines += changes(of: device, in: status, at: now)
    }
    for store in status.stores { lines += changes(of: store, in: status, at: now) }
    for carrier in status.carriers { lines += changes(of: carrier) }
    // A member may name ever new ones.
    let present = Set(status.carriers.map(\.location))
    carriers = carriers.filter { present.contains($0.key) }
    lines += newlyUnreached(status)
    isBegun = true
    return lines
  }

  private mutating func changes(
    of device: NodeStatus.Device, in status: NodeStatus, at now: UInt64
  ) -> [LogLine] {
    var lines: [LogLine] = []
    var logged = devices[device.id] ?? Device(name: device.name)
    if isBegun, devices[device.id] == nil, device.isMember {
      lines.append(LogLine(.joined, device: device.id, device.enrolled(in: status)))
    }
    if logged.name != device.name {
      lines.append(LogLine(.renamed, device: device.id, ["before": logged.name]))
      logged.name = device.name
    }
    // Otherwise a later status tells it.
    if logged.isConnected != device.isConnected, rateLimit.permit(device.id, at: now) {
      let address = status.peers.first { $0.device == device.id }?.address
      lines.append(
        LogLine(
          device.isConnected ? .connected : .disconnected, device: device.id,
          address.map { ["address": $0] } ?? [:]))
      logged.isConnected = device.isConnected
    }
    let leftOut = device.storesRejectedHere.count + device.storesRejectedThere.count
    if leftOut > logged.leftOut {
      lines.append(LogLine(.storesLeftOut, device: device.id, ["count": "\(leftOut)"]))
    }
    logged.leftOut = leftOut
    devices[device.id] = logged
    return lines
  }

  /// A line for each address that led to no device, until one is met there. Those of a connected
  /// device do not matter.
  private mutating func newlyUnreached(_ status: NodeStatus) -> [LogLine] {
    let connected = Set(status.peers.compactMap(\.device))
    let failed = status.addresses.filter { address in
      address.isUnreached && !(address.device.map(connected.contains) ?? false)
    }
    defer { unreached = Set(failed.map(\.address)) }
    return failed.filter { !unreached.contains($0.address) }.map { address in
      LogLine(
        .unreached, device: address.device,
        ["address": address.address, "reason": address.reason ?? ""])
    }
  }

  private mutating func changes(of carrier: NodeStatus.Carrier) -> [LogLine] {
    var lines: [LogLine] = []
    let logged = carriers[carrier.location] ?? (nil, 0)
    let location = ["carrier": carrier.location]
    if let problem = carrier.problem, logged.problem == nil {
      lines.append(LogLine(.carrierFailed, location.merging(["reason": problem]) { $1 }))
    } else if carrier.problem == nil, logged.problem != nil {
      lines.append(LogLine(.carrierWorks, location))
    }
    if carrier.vanished > logged.vanished {
      let count = ["count": "\(carrier.vanished - logged.vanished)"]
      lines.append(LogLine(.objectsVanished, location.merging(count) { $1 }))
    }
    carriers[carrier.location] = (carrier.problem, carrier.vanished)
    return lines
  }

  private mutating func changes(
    of store: NodeStatus.Store, in status: NodeStatus, at now: UInt64
  ) -> [LogLine] {
    var lines: [LogLine] = []
    var logged = stores[store.identifier] ?? Store()
    // Of a full list the oldest are dropped, so that its count stays.
    if isBegun, store.lastRefusal > logged.lastRefusal {
      let count = store.lastRefusal - logged.lastRefusal
      lines.append(LogLine(.writesRefused, store: store.identifier, ["count": "\(count)"]))
    }
    if isBegun, store.hiddenKeys > 0, logged.hiddenKeys == 0 {
      lines.append(
        LogLine(.valuesHidden, store: store.identifier, ["count": "\(store.hiddenKeys)"]))
    }
    (logged.lastRefusal, logged.hiddenKeys) = (store.lastRefusal, store.hiddenKeys)
    for device in store.policyMismatches { logged.limitsDiffer[device] = now }
    for (device, time) in logged.limitsDiffer.sorted(by: { $0.key < $1.key }) {
      if !status.peers.contains(where: { $0.device == device && $0.isExchanging }) {
        logged.limitsDiffer[device] = now
      } else if now - min(now, time) >= Self.comparingMilliseconds {
        lines.append(LogLine(.policiesAgree, device: device, store: store.identifier))
        logged.limitsDiffer[device] = nil
      }
    }
    stores[store.identifier] = logged
    return lines
  }
}

extension NodeStatus.Device {
  /// The device or key that enrolled this one, for the log.
  fileprivate func enrolled(in status: NodeStatus) -> [String: String] {
    switch enroller {
    case .device(let id):
      ["by": status.devices.first { $0.id == id }?.name ?? id.description]
    case .recoveryKey: ["by": "the recovery key"]
    case .creation, nil: [:]
    }
  }
}
