public import FoundationEssentials
public import KithCrypto

/// A newest write that the quota hides until it fits (`Docs/Protocol.md`, "Shown values").
public struct HiddenEntry: Codable, Hashable, Sendable {
  /// The key.
  public var key: Key
  /// Decodes: it was checked when it was made, or when it came over the control socket.
  package var hidden: EncodedValue
  /// The device that wrote it.
  public var device: DeviceID
  /// The time of the write, in milliseconds since 1970.
  package var writtenMilliseconds: UInt64

  /// The value's size for the quota, in bytes.
  public var bytes: Int { hidden.size }

  /// The time of the write.
  public var written: Date { Date(milliseconds: writtenMilliseconds) }

  /// The hidden value.
  ///
  /// - Complexity: O(*n*) in the value's bytes.
  public var value: PropertyListValue {
    guard let value = try? hidden.decoded() else { preconditionFailure("it decodes") }
    return value
  }

  package init(
    key: Key, hidden: EncodedValue, device: DeviceID, writtenMilliseconds: UInt64
  ) {
    self.key = key
    self.hidden = hidden
    self.device = device
    self.writtenMilliseconds = writtenMilliseconds
  }
}

extension HiddenEntry {
  /// Nil if the entry removes its key, or its value does not decode.
  init?(_ entry: Entry, forKey key: Key) {
    guard let value = entry.value, (try? value.decoded()) != nil else { return nil }
    self.init(
      key: key, hidden: value, device: entry.stamp.device,
      writtenMilliseconds: entry.stamp.clock.milliseconds)
  }
}

extension StoreState {
  var hiddenEntries: [HiddenEntry] {
    hiddenKeys.compactMap { key in
      slot(key).flatMap { HiddenEntry($0.newest.entry, forKey: key) }
    }
  }
}
