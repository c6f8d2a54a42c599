public import KithCrypto

/// Why bytes are not a membership record.
public enum RecordError: Error, Hashable, Sendable {
  /// More bytes than a record may have.
  case tooLarge(bytes: Int, limit: Int)
  /// More signatures than a record may have.
  case tooManySignatures(count: Int, limit: Int)
  /// Not the bytes of a record, or fields of a wrong length, order or number.
  case malformed
  /// A device's name is empty, longer than 64 bytes, or holds control characters.
  case invalidName
}

/// A signature under a record.
public struct RecordSignature: Hashable, Comparable, Sendable {
  /// A device's id, or the recovery key.
  public let signer: SigningPublicKey
  /// The Ed25519 signature over ``Record/signedBytes(account:body:isGenesis:)``.
  public let signature: Signature

  /// By signer, then by signature.
  public static func < (left: Self, right: Self) -> Bool {
    left.signer != right.signer ? left.signer < right.signer : left.signature < right.signature
  }
}

/// A membership record: a body, kept byte for byte as it was signed, and signatures
/// (`Docs/Protocol.md`,
/// "Membership"). Reading one checks its form, not its signatures.
///
/// Records with one body are one record. The envelope is not signed and has one form here:
/// signatures ascending by signer, one of each, nothing else.
public struct Record: Hashable, Sendable {
  /// What a record says.
  public enum Kind: Hashable, Sendable {
    /// The account's root and its first device.
    case genesis(Genesis)
    /// A device.
    case certificate(Certificate)
    /// An epoch.
    case epoch(EpochRecord)
    /// An epoch's secret for one more device.
    case lockbox(LockboxRecord)
    /// A device is thrown out.
    case revocation(RevocationRecord)
    /// A device is called something else.
    case rename(RenameRecord)
    /// Something that a later version understands; kept and passed on.
    case unknown
  }

  /// The BLAKE2b-256 of the body.
  public let id: Digest256
  /// What was signed.
  public let body: [UInt8]
  /// What the body says.
  public let kind: Kind
  /// Signatures, ascending by signer, one of each. They may be forged: a ``Roster`` checks them.
  public let signatures: [RecordSignature]

  /// Reads a record, whatever the bytes.
  public init(decoding bytes: [UInt8]) throws(RecordError) {
    guard bytes.count <= MembershipLimits.recordBytes else {
      throw .tooLarge(bytes: bytes.count, limit: MembershipLimits.recordBytes)
    }
    guard let wire = try? WireRecord(serializedBytes: bytes) else { throw .malformed }
    try self.init(wire)
  }

  init(_ wire: WireRecord) throws(RecordError) {
    guard wire.body.count <= MembershipLimits.bodyBytes else {
      throw .tooLarge(bytes: wire.body.count, limit: MembershipLimits.bodyBytes)
    }
    guard wire.signatures.count <= MembershipLimits.signatures else {
      throw .tooManySignatures(count: wire.signatures.count, limit: MembershipLimits.signatures)
    }
    var signatures: [RecordSignature] = []
    for signature in wire.signatures {
      signatures.append(
        RecordSignature(
          signer: try RecordBody.fixed(signature.signer),
          signature: try RecordBody.fixed(signature.signature)))
    }
    guard signatures.isStrictlyAscending(by: \.signer) else { throw .malformed }
    try self.init(body: [UInt8](wire.body), signatures: signatures)
  }

  /// Of several signatures of one signer the smallest stays.
  init(body: [UInt8], signatures: [RecordSignature]) throws(RecordError) {
    kind = try RecordBody.decode(body)
    id = Blake2b.digest256(body)
    self.body = body
    self.signatures = Self.canonical(signatures)
  }

  private init(_ record: Record, signatures: [RecordSignature]) {
    id = record.id
    body = record.body
    kind = record.kind
    self.signatures = Self.canonical(signatures)
  }

  /// The same record under other signatures.
  func with(signatures: [RecordSignature]) -> Record { Record(self, signatures: signatures) }

  private static func canonical(_ signatures: [RecordSignature]) -> [RecordSignature] {
    var result: [RecordSignature] = []
    for signature in signatures.sorted() where result.last?.signer != signature.signer {
      result.append(signature)
    }
    return result
  }

  /// The record's bytes; equal records have equal bytes.
  public var encoded: [UInt8] { wire.encodedBytes() }

  var wire: WireRecord {
    var wire = WireRecord()
    wire.body = .init(body)
    wire.signatures = signatures.map {
      var signature = WireRecordSignature()
      signature.signer = .init($0.signer.bytes)
      signature.signature = .init($0.signature.bytes)
      return signature
    }
    return wire
  }
}
