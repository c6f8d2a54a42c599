internal import KithCore

/// A device of the account, as the control socket tells it. Ids are in hexadecimal.
public struct DeviceReport: Codable, Sendable, Hashable {
  /// The device's id.
  public var id: String
  /// What people call it.
  public var name: String
  /// What two people compare by eye or voice.
  public var fingerprint: String
  /// Whether it is the device that answers.
  public var isThisDevice: Bool
  /// When it was certified, in milliseconds since 1970, by its own clock.
  public var enrolledMilliseconds: UInt64
  /// Who made it a member: a device's id, ``creation`` or ``recoveryKey``; nil where nobody's
  /// signature counts any more.
  public var enroller: String?
  /// The devices that revoked it; empty for a member.
  public var revokers: [String]
  /// When it was revoked, in milliseconds since 1970, by the revoker's clock.
  public var revokedMilliseconds: UInt64?
  /// When it was met last since the node was opened, in milliseconds since 1970.
  public var lastSeenMilliseconds: UInt64?
  /// Whether anything was ever heard of it since it became a member.
  public var wasHeard: Bool
  /// Whether there is a session with it now.
  public var isConnected: Bool
  /// How many change sets it is not known to have, by store; empty where nothing was heard from it.
  public var behind: [String: UInt64]
  /// Its version of Kith, where it said so.
  public var software: String?
  /// Its clock less that of the device that answers, in milliseconds.
  public var clockOffsetMilliseconds: Int64?
  /// The devices that are members only through it.
  public var dependents: [String]

  /// The ``enroller`` of the device that created the account.
  public static let creation = "creation"
  /// The ``enroller`` of a device that the recovery key certified.
  public static let recoveryKey = "recoveryKey"

  /// Whether it is one of the account's now.
  public var isMember: Bool { revokedMilliseconds == nil && enroller != nil }
}

extension DeviceReport {
  init(_ device: AccountDevice, dependents: [DeviceID]) {
    self.init(
      id: device.id.hex, name: device.name, fingerprint: device.fingerprint,
      isThisDevice: device.isThisDevice, enrolledMilliseconds: device.enrolledMilliseconds,
      enroller: device.enroller.map(Self.text),
      revokers: (device.revocation?.revokers ?? []).map(\.hex),
      revokedMilliseconds: device.revocation?.milliseconds,
      lastSeenMilliseconds: device.lastSeenMilliseconds, wasHeard: device.wasHeard,
      isConnected: device.isConnected,
      behind: Dictionary(uniqueKeysWithValues: device.behind.map { ($0.rawValue, $1) }),
      software: device.software, clockOffsetMilliseconds: device.clockOffsetMilliseconds,
      dependents: dependents.map(\.hex))
  }

  private static func text(_ enroller: AccountDevice.Enroller) -> String {
    switch enroller {
    case .creation: creation
    case .recoveryKey: recoveryKey
    case .device(let id): id.hex
    }
  }
}

extension AccountDevice {
  /// The device that a report tells of; nil where it is malformed.
  init?(_ report: DeviceReport) {
    guard let id = DeviceID(hex: report.id) else { return nil }
    let enroller: Enroller?
    switch report.enroller {
    case nil: enroller = nil
    case DeviceReport.creation?: enroller = .creation
    case DeviceReport.recoveryKey?: enroller = .recoveryKey
    case let text?:
      guard let device = DeviceID(hex: text) else { return nil }
      enroller = .device(device)
    }
    let revokers = report.revokers.compactMap(DeviceID.init(hex:))
    guard revokers.count == report.revokers.count else { return nil }
    var behind: [StoreIdentifier: UInt64] = [:]
    for (text, count) in report.behind {
      guard let store = StoreIdentifier(text) else { return nil }
      behind[store] = count
    }
    self.init(
      id: id, name: report.name, fingerprint: report.fingerprint,
      isThisDevice: report.isThisDevice, enrolledMilliseconds: report.enrolledMilliseconds,
      enroller: enroller,
      revocation: report.revokedMilliseconds.map { .init(revokers: revokers, milliseconds: $0) },
      lastSeenMilliseconds: report.lastSeenMilliseconds, wasHeard: report.wasHeard,
      isConnected: report.isConnected,
      behind: behind, software: report.software,
      clockOffsetMilliseconds: report.clockOffsetMilliseconds)
  }
}

extension Node {
  /// The devices of the account, also those that were revoked, by id.
  public func deviceReports() async throws(KithError) -> [DeviceReport] {
    devices().map { DeviceReport($0, dependents: $0.isMember ? dependents(of: $0.id) : []) }
  }
}

extension ControlClient {
  /// The devices of the account, also those that were revoked, by id.
  public func deviceReports() async throws(KithError) -> [DeviceReport] {
    guard let devices = try await ask(.devices).devices else { throw .malformedControl }
    return devices
  }

  /// Says that the time that the device uses is right; see `Node.acceptTime`.
  public func acceptTime() async throws(KithError) { _ = try await ask(.acceptTime) { _ in } }

  /// Calls a device something else; see `Node.rename`.
  public func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    _ = try await ask(.rename) {
      $0.device = device.hex
      $0.name = name
    }
  }

  /// Throws a device out of the account; see `Node.revoke`.
  public func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    _ = try await ask(.revoke) {
      $0.device = device.hex
      $0.keeping = staying.sorted().map(\.hex)
    }
  }
}
