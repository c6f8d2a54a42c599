package import KithCrypto

/// The account's recovery key and its first device (`Docs/Protocol.md`, "Membership").
package struct Genesis: Hashable, Sendable {
  package let recoverySigningKey: SigningPublicKey
  package let recoveryBoxKey: BoxPublicKey
  package let firstDevice: Certificate
}

/// An epoch's secret, sealed to one device.
package struct SealedSecret: Hashable, Sendable {
  package static let boxBytes = secretKeyByteCount + AnonymousBox.overhead

  package let device: DeviceID
  package let box: [UInt8]
}

/// The content of an epoch's record (`Docs/Protocol.md`, "Membership").
package struct EpochRecord: Hashable, Sendable {
  /// The epochs that this one follows, ascending.
  package let parents: [EpochID]
  /// 1 + the highest of its parents'.
  package let generation: UInt32
  /// Entries are sealed to it.
  package let boxPublicKey: BoxPublicKey
  /// The secret for each recipient, ascending by device.
  package let recipients: [SealedSecret]
  /// The secret, sealed to the recovery key.
  package let recoverySecret: [UInt8]

  package var id: EpochID { EpochID(Blake2b.digest256(boxPublicKey.bytes)) }
}

/// An epoch's secret for a member that the epoch's record does not name (`Docs/Protocol.md`,
/// "Membership").
package struct LockboxRecord: Hashable, Sendable {
  package let epoch: EpochID
  package let secret: SealedSecret
}

/// The revocation of a device (`Docs/Protocol.md`, "Membership").
package struct RevocationRecord: Hashable, Sendable {
  package let device: DeviceID
  /// The devices that it enrolled and that stay, ascending.
  package let keeps: [DeviceID]
  /// Milliseconds since 1970.
  package let issued: UInt64
}

/// A device's name, in place of its certificate's (`Docs/Protocol.md`, "Membership").
package struct RenameRecord: Hashable, Sendable {
  package let device: DeviceID
  /// Valid as in a ``Certificate``.
  package let name: String
  /// Milliseconds since 1970. The latest rename of a device counts.
  package let issued: UInt64
}

enum RecordBody {
  /// A body of a known kind has one encoding. Otherwise unknown fields, or numbers longer than needed,
  /// could make the records of a full roster too large for a session.
  static func decode(_ bytes: [UInt8]) throws(RecordError) -> Record.Kind {
    let kind = try kind(of: bytes)
    guard encode(kind).map({ $0 == bytes }) ?? true else { throw .malformed }
    return kind
  }

  private static func kind(of bytes: [UInt8]) throws(RecordError) -> Record.Kind {
    guard let wire = try? WireRecordBody(serializedBytes: bytes) else { throw .malformed }
    switch wire.kind {
    case .genesis(let genesis): return .genesis(try decode(genesis))
    case .certificate(let certificate): return .certificate(try Certificate(certificate))
    case .epoch(let epoch): return .epoch(try decode(epoch))
    case .lockbox(let lockbox): return .lockbox(try decode(lockbox))
    case .revocation(let revocation): return .revocation(try decode(revocation))
    case .rename(let rename): return .rename(try decode(rename))
    case nil: return .unknown
    }
  }

  static func fixed<Value: FixedBytes>(
    _ bytes: some Collection<UInt8>
  ) throws(RecordError) -> Value {
    do throws(CryptoError) {
      return try Value(bytes)
    } catch {
      throw .malformed
    }
  }

  private static func decode(_ wire: WireGenesis) throws(RecordError) -> Genesis {
    Genesis(
      recoverySigningKey: try fixed(wire.recoverySigningKey),
      recoveryBoxKey: try fixed(wire.recoveryBoxKey),
      firstDevice: try Certificate(wire.firstDevice))
  }

  private static func decode(_ wire: WireSealedSecret) throws(RecordError) -> SealedSecret {
    guard wire.box.count == SealedSecret.boxBytes else { throw .malformed }
    return SealedSecret(device: try fixed(wire.device), box: [UInt8](wire.box))
  }

  private static func decode(_ wire: WireEpoch) throws(RecordError) -> EpochRecord {
    guard wire.parents.count <= MembershipLimits.parents,
      wire.recipients.count <= MembershipLimits.recipients,
      wire.recoverySecret.count == SealedSecret.boxBytes,
      wire.generation > 0, wire.parents.isEmpty == (wire.generation == 1)
    else { throw .malformed }
    var parents: [EpochID] = []
    for parent in wire.parents { parents.append(EpochID(try fixed(parent))) }
    var recipients: [SealedSecret] = []
    for recipient in wire.recipients { recipients.append(try decode(recipient)) }
    guard parents.isStrictlyAscending(by: \.self), recipients.isStrictlyAscending(by: \.device)
    else { throw .malformed }
    return EpochRecord(
      parents: parents, generation: wire.generation, boxPublicKey: try fixed(wire.boxPublicKey),
      recipients: recipients, recoverySecret: [UInt8](wire.recoverySecret))
  }

  private static func decode(_ wire: WireLockbox) throws(RecordError) -> LockboxRecord {
    LockboxRecord(epoch: EpochID(try fixed(wire.epoch)), secret: try decode(wire.secret))
  }

  private static func decode(_ wire: WireRevocation) throws(RecordError) -> RevocationRecord {
    guard wire.keeps.count <= MembershipLimits.keeps else { throw .malformed }
    var keeps: [DeviceID] = []
    for device in wire.keeps { keeps.append(try fixed(device)) }
    guard keeps.isStrictlyAscending(by: \.self) else { throw .malformed }
    return RevocationRecord(
      device: try fixed(wire.device), keeps: keeps, issued: wire.issued)
  }

  private static func decode(_ wire: WireRename) throws(RecordError) -> RenameRecord {
    guard Certificate.isValidName(wire.name) else { throw .invalidName }
    return RenameRecord(device: try fixed(wire.device), name: wire.name, issued: wire.issued)
  }
}
