internal import KithCore
internal import KithCrypto

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// A key and its value in base64; no value: the key shows nothing.
struct ControlEntry: Codable, Sendable {
  var key: String
  var value: String?

  init(key: String, value: PropertyListValue?) throws(KithError) {
    self.key = key
    self.value = try value.map { value throws(KithError) in try Self.text(value, key: key) }
  }

  init(_ operation: KithCore.Operation) {
    key = operation.key
    value = operation.value.map { Data($0.bytes).base64EncodedString() }
  }

  /// The write that it stands for.
  func operation() throws(KithError) -> KithCore.Operation {
    KithCore.Operation(key: key, value: try value.map(Self.encoded))
  }

  /// The value's text.
  static func text(_ value: PropertyListValue, key: String) throws(KithError) -> String {
    do {
      return Data(try EncodedValue(value).bytes).base64EncodedString()
    } catch {
      throw KithError(error, key: key)
    }
  }

  /// The value that a text stands for.
  static func encoded(_ text: String) throws(KithError) -> EncodedValue {
    guard let data = Data(base64Encoded: text) else {
      throw KithError(.control, "A value is not base64.")
    }
    do {
      return try EncodedValue(checking: [UInt8](data))
    } catch {
      throw KithError(.control, "A value is not in its one encoding: \(error).", cause: error)
    }
  }

  /// The value that a text stands for.
  static func value(_ text: String) throws(KithError) -> PropertyListValue {
    do {
      return try encoded(text).decoded()
    } catch let error as KithError {
      throw error
    } catch {
      throw KithError(.control, "A value cannot be read: \(error).", cause: error)
    }
  }
}

/// A ``HiddenValue``.
struct ControlHidden: Codable, Sendable {
  var entry: ControlEntry
  var bytes: Int
  var device: String
  var clock: UInt64

  init(_ hidden: HiddenValue) throws(KithError) {
    entry = try ControlEntry(key: hidden.key, value: hidden.value)
    bytes = hidden.bytes
    device = hidden.device.hex
    clock = hidden.clock.rawValue
  }

  func value() throws(KithError) -> HiddenValue {
    guard let text = entry.value else { throw .malformedControl }
    return HiddenValue(
      key: entry.key, value: try ControlEntry.value(text), bytes: bytes,
      device: try DeviceID(control: device), clock: HybridTime(rawValue: clock))
  }
}

/// A ``RefusedTransaction``.
struct ControlRefusal: Codable, Sendable {
  var number: UInt64
  var reason: String
  var clock: UInt64
  var writes: [ControlEntry]

  init(_ refusal: RefusedTransaction) throws(KithError) {
    number = refusal.number
    reason = refusal.reason.rawValue
    clock = refusal.clock.rawValue
    writes = []
    for write in refusal.writes {
      writes.append(try ControlEntry(key: write.key, value: write.value))
    }
  }

  func value() throws(KithError) -> RefusedTransaction {
    guard let reason = RefusedTransaction.Reason(rawValue: reason) else {
      throw .malformedControl
    }
    var decoded: [RefusedTransaction.Write] = []
    for write in writes {
      decoded.append(.init(key: write.key, value: try write.value.map(ControlEntry.value)))
    }
    return RefusedTransaction(
      number: number, reason: reason, clock: HybridTime(rawValue: clock), writes: decoded)
  }
}

/// A ``SyncReport``.
struct ControlSynchronization: Codable, Sendable {
  var complete: [String]
  var incomplete: [String]
  var hasUnpublishedWrites: Bool

  init(_ report: SyncReport) {
    complete = report.complete.map(\.hex)
    incomplete = report.incomplete.map(\.hex)
    hasUnpublishedWrites = report.hasUnpublishedWrites
  }

  func value() throws(KithError) -> SyncReport {
    SyncReport(
      complete: try complete.map { text throws(KithError) in try DeviceID(control: text) },
      incomplete: try incomplete.map { text throws(KithError) in try DeviceID(control: text) },
      hasUnpublishedWrites: hasUnpublishedWrites)
  }
}

/// A ``Policy``.
struct ControlPolicy: Codable, Sendable {
  var totalBytes: Int
  var keys: Int
  var keyBytes: Int
  var valueBytes: Int

  init(_ policy: Policy) {
    totalBytes = policy.totalBytes
    keys = policy.keys
    keyBytes = policy.keyBytes
    valueBytes = policy.valueBytes
  }

  var policy: Policy {
    Policy(totalBytes: totalBytes, keys: keys, keyBytes: keyBytes, valueBytes: valueBytes)
  }
}

/// A ``Change``. For an attached program without what was shown before.
struct ControlChange: Codable, Sendable {
  var reason: String
  var old: [ControlEntry]
  var new: [ControlEntry]
  var superseded: [String]
  var isJoined: Bool
  /// Whether the next line has another part of the same change.
  var goesOn: Bool?

  init(_ change: Change) throws(KithError) {
    reason = change.reason.rawValue
    old = []
    new = []
    for item in change.items {
      old.append(try ControlEntry(key: item.key, value: item.old))
      new.append(try ControlEntry(key: item.key, value: item.new))
    }
    superseded = change.superseded
    isJoined = change.isJoined
  }

  func value() throws(KithError) -> Change {
    guard let reason = Change.Reason(rawValue: reason), old.count == new.count else {
      throw .malformedControl
    }
    var items: [Change.Item] = []
    for (old, new) in zip(old, new) {
      items.append(
        Change.Item(
          key: new.key, old: try old.value.map(ControlEntry.value),
          new: try new.value.map(ControlEntry.value)))
    }
    return Change(reason: reason, items: items, superseded: superseded, isJoined: isJoined)
  }
}

/// A ``JoinCandidate``.
struct ControlCandidate: Codable, Sendable {
  var device: String
  var name: String
  var fingerprint: String
  var address: String

  init(_ candidate: JoinCandidate) {
    device = candidate.device.hex
    name = candidate.name
    fingerprint = candidate.fingerprint
    address = candidate.address
  }

  func value() throws(KithError) -> JoinCandidate {
    JoinCandidate(
      device: try DeviceID(control: device), name: name, fingerprint: fingerprint,
      address: address)
  }
}

extension DeviceID {
  /// Reads 64 hexadecimal digits.
  init(control text: String) throws(KithError) {
    guard let device = Self(hex: text) else { throw .malformedControl }
    self = device
  }
}
