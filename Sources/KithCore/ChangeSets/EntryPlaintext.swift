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

  /// Nil if it is not an entry's canonical encoding, and so never valid: one digest for each entry
  /// needs one encoding.
  init?(plaintext: [UInt8]) {
    let entry = plaintext.withUnsafeBytes { bytes in
      try? Entry(from: CanonicalReader(bytes))
    }
    guard let entry else { return nil }
    self = entry
  }

  private init(from reader: consuming CanonicalReader) throws(CanonicalReader.Failure) {
    let key = try reader.content(1)
    guard !key.isEmpty, let text = String(validating: key, as: UTF8.self) else {
      throw CanonicalReader.Failure()
    }
    let stamp = try Stamp(from: reader.message(2))
    let content: Content
    if reader.has(CanonicalReader.Tag.bytes(3)) {
      content = .value(try EncodedValue(from: reader.content()))
    } else {
      guard try reader.number(4) == 1 else { throw CanonicalReader.Failure() }
      content = .removed
    }
    let claim = try Claim(from: reader.message(5))
    var replaced: Stamp?
    if reader.has(CanonicalReader.Tag.bytes(6)) {
      replaced = try Stamp(from: CanonicalReader(reader.content()))
    }
    var fallback: Fallback?
    if reader.has(CanonicalReader.Tag.bytes(7)) {
      fallback = try Fallback(from: CanonicalReader(reader.content()))
    }
    try reader.end()
    self.init(
      key: Key(text), stamp: stamp, content: content, claim: claim, replaced: replaced,
      fallback: fallback)
  }
}

extension EncodedValue {
  /// No value has an empty encoding. A text is checked without making a `String`.
  fileprivate init(from content: UnsafeRawBufferPointer) throws(CanonicalReader.Failure) {
    let bytes = [UInt8](content)
    var reader = CanonicalReader(content)
    guard reader.has(ValueTag.string.rawValue) else {
      do throws(ValueError) {
        try self.init(checking: bytes)
      } catch {
        throw CanonicalReader.Failure()
      }
      return
    }
    let text = try reader.content()
    try reader.end()
    do throws(UTF8.ValidationError) {
      _ = try UTF8Span(validating: bytes.span.extracting(last: text.count))
    } catch {
      throw CanonicalReader.Failure()
    }
    self.init(trusting: bytes)
  }
}

extension Fallback {
  fileprivate init(from reader: consuming CanonicalReader) throws(CanonicalReader.Failure) {
    self.init(
      value: try EncodedValue(from: reader.content(1)), claim: try Claim(from: reader.message(2)))
    try reader.end()
  }
}

extension Stamp {
  fileprivate init(from reader: consuming CanonicalReader) throws(CanonicalReader.Failure) {
    self.init(clock: HybridTime(rawValue: try reader.fixed64(1)), device: try reader.fixed(2))
    try reader.end()
  }
}

extension Claim {
  fileprivate init(from reader: consuming CanonicalReader) throws(CanonicalReader.Failure) {
    let clock = HybridTime(rawValue: try reader.fixed64(1))
    let device = try reader.fixed(2, as: DeviceID.self)
    guard let group = UInt32(exactly: try reader.number(3)) else { throw CanonicalReader.Failure() }
    self.init(clock: clock, device: device, group: group)
    try reader.end()
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
