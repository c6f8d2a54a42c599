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

/// A ``KeyValueStore/HiddenEntry``.
struct ControlHidden: Codable, Sendable {
  var entry: ControlEntry
  var bytes: Int
  var device: String
  var writtenMilliseconds: UInt64

  init(_ hidden: HiddenEntry) throws(KithError) {
    entry = try ControlEntry(key: hidden.key, value: hidden.value)
    bytes = hidden.bytes
    device = hidden.device.hex
    writtenMilliseconds = hidden.writtenMilliseconds
  }

  func value() throws(KithError) -> HiddenEntry {
    guard let text = entry.value else { throw .malformedControl }
    return HiddenEntry(
      key: entry.key, value: try ControlEntry.value(text), bytes: bytes,
      device: try DeviceID(control: device), writtenMilliseconds: writtenMilliseconds)
  }
}

/// A ``KeyValueStore/Refusal``.
struct ControlRefusal: Codable, Sendable {
  var number: UInt64
  var reason: UInt8
  var clock: UInt64
  var writes: [ControlEntry]

  init(_ refusal: Refusal) {
    number = refusal.number
    reason = refusal.reason.rawValue
    clock = refusal.clock.rawValue
    writes = refusal.operations.map { ControlEntry($0) }
  }

  func value() throws(KithError) -> Refusal {
    guard let reason = Refusal.Reason(rawValue: reason) else { throw .malformedControl }
    return Refusal(
      number: number, reason: reason, clock: HybridTime(rawValue: clock),
      operations: try writes.map { write throws(KithError) in try write.operation() })
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

/// A ``KeyValueStore/Change``. For an attached program without what was shown before.
struct ControlChange: Codable, Sendable {
  var reason: String
  var old: [ControlEntry]
  var new: [ControlEntry]
  var superseded: [String]
  var isJoined: Bool
  /// Whether the next line has another part of the same change.
  var goesOn: Bool?

  init(_ change: KeyValueStore.Change) throws(KithError) {
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

  func value() throws(KithError) -> KeyValueStore.Change {
    guard let reason = ChangeReason(rawValue: reason), old.count == new.count else {
      throw .malformedControl
    }
    var items: [KeyValueStore.Change.Item] = []
    for (old, new) in zip(old, new) {
      items.append(
        KeyValueStore.Change.Item(
          key: new.key, old: try old.value.map(ControlEntry.value),
          new: try new.value.map(ControlEntry.value)))
    }
    return KeyValueStore.Change(
      reason: reason, items: items, superseded: superseded, isJoined: isJoined)
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
