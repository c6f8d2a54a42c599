internal import KithCrypto

/// A device's note of an object on a carrier. It is stored, so that a device that is on for a
/// moment reads each object once.
struct KnownObject: Hashable, Sendable {
  enum State: Hashable, Sendable {
    case unread
    /// It did not open, first at this time.
    case unreadable(since: UInt64)
    /// It was read and does not count yet: it is got again when its reader covers what it is above.
    case waiting(Parcel)
    /// It was taken in.
    case counted(Parcel)
    /// It leads to an epoch.
    case handover(Parcel, to: EpochID)
  }

  var state: State
  /// The epoch that its name belongs to.
  let epoch: EpochID
  var bytes: Int
  /// Times in milliseconds since 1970.
  var firstSeen: UInt64
  /// Since when listings lack it, or show another size.
  var missingSince: UInt64?
  /// Whether a listing showed it at its size.
  var isSeen: Bool
  /// The ``CarrierReader/circumstances`` under which part of it could not be taken in.
  var heldBack: Digest256?

  /// Whether the last listing showed it, at its size.
  var isThere: Bool { isSeen && missingSince == nil }

  /// Whether this device read it or made it, so that its size is known.
  var isOpened: Bool {
    switch state {
    case .waiting, .counted, .handover: true
    case .unread, .unreadable: false
    }
  }

  /// A parcel that was read.
  var parcel: Parcel? {
    switch state {
    case .waiting(let parcel), .counted(let parcel): parcel
    case .unread, .unreadable, .handover: nil
    }
  }

  /// The clock may have been set back since its times were noted.
  mutating func setBack(to now: UInt64) {
    firstSeen = min(firstSeen, now)
    missingSince = missingSince.map { min($0, now) }
    if case .unreadable(let since) = state { state = .unreadable(since: min(since, now)) }
  }
}

extension KnownObject {
  private enum Code: UInt32 {
    case unread = 0
    case unreadable = 1
    case waiting = 2
    case counted = 3
    case handover = 4
  }

  func encoded() -> [UInt8] {
    var wire = WireStoredObject()
    wire.bytes = UInt64(bytes)
    wire.firstSeen = firstSeen
    wire.missingSince = missingSince ?? 0
    wire.epoch = .init(epoch.bytes)
    wire.seen = isSeen
    var parcel: Parcel?
    switch state {
    case .unread: wire.state = Code.unread.rawValue
    case .unreadable(let since):
      wire.state = Code.unreadable.rawValue
      wire.unreadableSince = since
    case .waiting(let waiting):
      wire.state = Code.waiting.rawValue
      parcel = waiting
    case .counted(let counted):
      wire.state = Code.counted.rawValue
      parcel = counted
    case .handover(let handover, let newest):
      wire.state = Code.handover.rawValue
      parcel = handover
      wire.ledTo = .init(newest.bytes)
    }
    if let heldBack { wire.heldBack = .init(heldBack.bytes) }
    if let parcel { wire.parcel = .init(parcel.encoded()) }
    return wire.encodedBytes()
  }

  /// Nil if malformed: it is read again.
  init?(decoding bytes: [UInt8], account: AccountID) {
    guard let wire = try? WireStoredObject(serializedBytes: bytes),
      let epoch = try? Digest256(wire.epoch), let code = Code(rawValue: wire.state)
    else { return nil }
    self.epoch = EpochID(epoch)
    self.bytes = Int(clamping: wire.bytes)
    firstSeen = wire.firstSeen
    missingSince = wire.missingSince == 0 ? nil : wire.missingSince
    isSeen = wire.seen
    heldBack = try? Digest256(wire.heldBack)
    let parcel = Parcel.decode([UInt8](wire.parcel), account: account)?.parcel
    switch (code, parcel) {
    case (.unread, _): state = .unread
    case (.unreadable, _): state = .unreadable(since: wire.unreadableSince)
    case (.waiting, let parcel?): state = .waiting(parcel)
    case (.counted, let parcel?): state = .counted(parcel)
    case (.handover, let parcel?):
      guard let newest = try? Digest256(wire.ledTo) else { return nil }
      state = .handover(parcel, to: EpochID(newest))
    case (.waiting, nil), (.counted, nil), (.handover, nil): return nil
    }
  }
}
