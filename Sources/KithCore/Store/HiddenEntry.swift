public import KithCrypto

/// A newest write that the quota hides until it fits (`Docs/Protocol.md`, "Shown values").
public struct HiddenEntry: Hashable, Sendable {
  /// The key.
  public var key: String
  /// The hidden value.
  public var value: PropertyListValue
  /// The value's size for the quota, in bytes.
  public var bytes: Int
  /// The device that wrote it.
  public var device: DeviceID
  /// The time of the write, in milliseconds since 1970.
  public var writtenMilliseconds: UInt64

  package init(
    key: String, value: PropertyListValue, bytes: Int, device: DeviceID, writtenMilliseconds: UInt64
  ) {
    self.key = key
    self.value = value
    self.bytes = bytes
    self.device = device
    self.writtenMilliseconds = writtenMilliseconds
  }
}

extension StoreState {
  var hiddenEntries: [HiddenEntry] {
    hiddenKeys.compactMap { key in
      guard let entry = slot(key)?.newest.entry, let encoded = entry.value,
        let value = try? encoded.decoded()
      else { return nil }
      return HiddenEntry(
        key: key.text, value: value, bytes: encoded.size, device: entry.stamp.device,
        writtenMilliseconds: entry.stamp.clock.milliseconds)
    }
  }
}
