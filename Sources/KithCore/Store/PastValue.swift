public import FoundationEssentials
public import KithCrypto
internal import SwiftProtobuf

/// A value that a key showed before on this device (`Docs/Glossary.md`, "history").
public struct PastValue: Codable, Hashable, Sendable {
  /// The value's number in its store's history: later ones have higher numbers.
  public var number: UInt64
  /// The number of the first value that ended with it: all that one commit replaced have the same, or
  /// one merge; what the quota hid or showed with them has another.
  public var transaction: UInt64
  /// The key.
  public var key: Key
  /// Nil: the key was missing.
  package var shown: EncodedValue?
  /// The time when the key ceased to show it, in milliseconds since 1970.
  package var endedMilliseconds: UInt64
  /// The device whose write replaced it; nil if the quota changed the shown values.
  public var endedBy: DeviceID?

  /// The value; nil if the key was missing.
  ///
  /// - Complexity: O(*n*) in the value's bytes.
  public var value: PropertyListValue? { shown.flatMap { try? $0.decoded() } }

  /// The time when the key ceased to show it.
  public var ended: Date { Date(milliseconds: endedMilliseconds) }

  /// The write that makes the key show the value again.
  package var operation: Operation { Operation(key: key.text, value: shown) }

  package init(
    number: UInt64, transaction: UInt64, key: Key, shown: EncodedValue?,
    endedMilliseconds: UInt64, endedBy: DeviceID?
  ) {
    self.number = number
    self.transaction = transaction
    self.key = key
    self.shown = shown
    self.endedMilliseconds = endedMilliseconds
    self.endedBy = endedBy
  }
}

extension PastValue {
  init?(number: UInt64, decoding bytes: [UInt8]) {
    guard let wire = try? WireStoredPastValue(serializedBytes: bytes) else { return nil }
    var shown: EncodedValue?
    if wire.hasValue {
      guard let value = try? EncodedValue(checking: [UInt8](wire.value)) else { return nil }
      shown = value
    }
    self.init(
      number: number, transaction: wire.transaction, key: Key(wire.key), shown: shown,
      endedMilliseconds: wire.ended,
      endedBy: wire.hasEndedBy ? try? DeviceID(wire.endedBy) : nil)
  }

  func encoded() -> [UInt8] {
    var wire = WireStoredPastValue()
    wire.key = key.text
    if let shown { wire.value = .init(shown.bytes) }
    wire.ended = endedMilliseconds
    if let endedBy { wire.endedBy = .init(endedBy.bytes) }
    wire.transaction = transaction
    return wire.encodedBytes()
  }

  var keptBytes: Int { Limits.overheadBytes + key.size + (shown?.size ?? 0) }

  func isExpired(at milliseconds: UInt64) -> Bool {
    milliseconds > endedMilliseconds
      && milliseconds - endedMilliseconds >= Limits.historyMilliseconds
  }
}

/// What is to show past values again.
package enum Undo: Codable, Hashable, Sendable {
  /// A key: its newest past value, or the one with a number.
  case key(String, to: UInt64?)
  /// All keys whose values ended together (``PastValue/transaction``).
  case transaction(UInt64)
}
