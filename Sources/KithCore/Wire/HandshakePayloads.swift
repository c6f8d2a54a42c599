package import KithCrypto

/// The versions that a dialler offers in handshake message 1.
package struct Offer: Hashable, Sendable {
  package var versions: [UInt32]

  /// The versions that this code speaks, the best first.
  package static let current = Self(versions: [1])

  package init(versions: [UInt32]) {
    self.versions = versions
  }

  package init?(decoding bytes: [UInt8]) {
    guard let wire = try? WireOffer(serializedBytes: bytes) else { return nil }
    versions = wire.versions
  }

  package func chosen(from other: Offer) -> UInt32? {
    versions.filter(other.versions.contains).max()
  }

  package func encoded() -> [UInt8] {
    var wire = WireOffer()
    wire.versions = versions
    return wire.encodedBytes()
  }
}

/// A side's description of itself, in handshake messages 2 and 3.
package struct Hello: Hashable, Sendable {
  /// The protocol version, chosen by the listener.
  package var version: UInt32
  /// The side's ``ClockReading/reading``.
  package var clock: HybridTime
  package var isSynchronised: Bool
  package var process: ProcessID
  package var rosterDigest: Digest256
  /// The port that the side listens on; 0 for none.
  package var port: UInt16
  /// The side's version of Kith, for people; may be empty.
  package var software: String
  /// Its certificate binds this id to the handshake's static key, and this field binds the key to
  /// the id.
  package var device: DeviceID?

  var time: ClockReading { ClockReading(reading: clock, isSynchronised: isSynchronised) }

  package init(
    version: UInt32, clock: HybridTime, isSynchronised: Bool, process: ProcessID,
    rosterDigest: Digest256, port: UInt16, software: String = "", device: DeviceID? = nil
  ) {
    self.version = version
    self.clock = clock
    self.isSynchronised = isSynchronised
    self.process = process
    self.rosterDigest = rosterDigest
    self.port = port
    self.software = software
    self.device = device
  }

  package init?(decoding bytes: [UInt8]) {
    guard let wire = try? WireHello(serializedBytes: bytes),
      let process = try? Digest128(wire.processID),
      let digest = try? Digest256(wire.rosterDigest),
      let port = UInt16(exactly: wire.port)
    else { return nil }
    var device: DeviceID?
    if !wire.device.isEmpty {
      guard let id = try? DeviceID(wire.device) else { return nil }
      device = id
    }
    let isPrintable =
      wire.software.utf8.count <= Limits.softwareBytes
      && wire.software.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    self.init(
      version: wire.version, clock: HybridTime(rawValue: wire.clock),
      isSynchronised: wire.synchronised, process: ProcessID(process), rosterDigest: digest,
      port: port, software: isPrintable ? wire.software : "", device: device)
  }

  package func encoded() -> [UInt8] {
    var wire = WireHello()
    wire.version = version
    wire.clock = clock.rawValue
    wire.synchronised = isSynchronised
    wire.processID = .init(process.digest.bytes)
    wire.rosterDigest = .init(rosterDigest.bytes)
    wire.port = UInt32(port)
    wire.software = software
    if let device { wire.device = .init(device.bytes) }
    return wire.encodedBytes()
  }
}
