package import KithCrypto

/// The versions that a dialler offers in the payload of handshake message 1.
package struct Offer: Hashable, Sendable {
  /// Protocol versions that the dialler speaks.
  package var versions: [UInt32]

  /// The versions that this code speaks, best first.
  package static let current = Self(versions: [1])

  /// Makes an offer.
  package init(versions: [UInt32]) {
    self.versions = versions
  }

  /// Reads an offer; nil if the bytes are malformed.
  package init?(decoding bytes: [UInt8]) {
    guard let wire = try? WireOffer(serializedBytes: bytes) else { return nil }
    versions = wire.versions
  }

  /// The highest version that both sides speak, or nil.
  package func chosen(from other: Offer) -> UInt32? {
    versions.filter(other.versions.contains).max()
  }

  /// The offer's bytes.
  package func encoded() -> [UInt8] {
    var wire = WireOffer()
    wire.versions = versions
    return wire.encodedBytes()
  }
}

/// A side's description of itself, in the payloads of handshake messages 2 and 3.
package struct Hello: Hashable, Sendable {
  /// The protocol version, chosen by the listener.
  package var version: UInt32
  /// The side's hybrid logical clock.
  package var clock: HybridTime
  /// Whether the side's kernel calls its clock synchronised.
  package var isSynchronised: Bool
  /// The side's process.
  package var process: ProcessID
  /// The digest of the membership records that the side holds.
  package var rosterDigest: Digest256
  /// The port that the side listens on; 0: none.
  package var port: UInt16
  /// The side's version of Kith, for people; empty: not said.
  package var software: String
  /// The id of the side's device: its certificate binds the id to the handshake's static key, and
  /// this field binds the key to the id. Nil: not said.
  package var device: DeviceID?

  /// Makes a hello.
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

  /// Reads a hello; nil if the bytes are malformed.
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

  /// The hello's bytes.
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
