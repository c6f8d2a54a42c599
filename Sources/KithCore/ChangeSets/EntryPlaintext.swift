internal import KithCrypto

extension Entry {
  /// Canonical: an entry that was read gives the bytes that its author sealed.
  package func plaintext() -> [UInt8] {
    var wire = WireEntry()
    wire.key = key.text
    wire.stamp = WireStamp(stamp)
    switch content {
    case .value(let value): wire.value = .init(value.bytes)
    case .removed: wire.removed = true
    }
    wire.claim = WireClaim(claim)
    if let replaced { wire.replaced = WireStamp(replaced) }
    if let fallback {
      wire.fallback.value = .init(fallback.value.bytes)
      wire.fallback.claim = WireClaim(fallback.claim)
    }
    return wire.encodedBytes()
  }

  /// Nil if it is not an entry's canonical encoding, and so never valid.
  init?(plaintext: [UInt8]) {
    guard let wire = try? WireEntry(serializedBytes: plaintext), !wire.key.isEmpty,
      let stamp = Stamp(wire.stamp), let claim = Claim(wire.claim)
    else { return nil }
    let content: Content
    switch wire.content {
    case .value(let bytes):
      guard let value = try? EncodedValue(checking: [UInt8](bytes)) else { return nil }
      content = .value(value)
    case .removed(true): content = .removed
    default: return nil
    }
    var replaced: Stamp?
    if wire.hasReplaced {
      guard let stamp = Stamp(wire.replaced) else { return nil }
      replaced = stamp
    }
    var fallback: Fallback?
    if wire.hasFallback {
      guard let value = try? EncodedValue(checking: [UInt8](wire.fallback.value)),
        let claim = Claim(wire.fallback.claim)
      else { return nil }
      fallback = Fallback(value: value, claim: claim)
    }
    self.init(
      key: Key(wire.key), stamp: stamp, content: content, claim: claim, replaced: replaced,
      fallback: fallback)
    // One digest for each entry needs one encoding: no unknown fields, other order, explicit
    // defaults or longer numbers.
    guard self.plaintext() == plaintext else { return nil }
  }
}

extension Stamp {
  fileprivate init?(_ wire: WireStamp) {
    guard let device = try? DeviceID(wire.device) else { return nil }
    self.init(clock: HybridTime(rawValue: wire.clock), device: device)
  }
}

extension Claim {
  fileprivate init?(_ wire: WireClaim) {
    guard let device = try? DeviceID(wire.device) else { return nil }
    self.init(clock: HybridTime(rawValue: wire.clock), device: device, group: wire.group)
  }
}

extension WireStamp {
  fileprivate init(_ stamp: Stamp) {
    self.init()
    clock = stamp.clock.rawValue
    device = .init(stamp.device.bytes)
  }
}

extension WireClaim {
  fileprivate init(_ claim: Claim) {
    self.init()
    clock = claim.clock.rawValue
    device = .init(claim.device.bytes)
    group = claim.group
  }
}
