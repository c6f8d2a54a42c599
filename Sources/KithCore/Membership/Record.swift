package import KithCrypto

/// The error for bytes that are not a membership record.
package enum RecordError: Error, Hashable, Sendable {
  /// The record has too many bytes.
  case tooLarge(bytes: Int, limit: Int)
  /// The record has too many signatures.
  case tooManySignatures(count: Int, limit: Int)
  /// The bytes are not a record, or a field has a wrong length, order or number.
  case malformed
  /// A device's name is empty, longer than 64 bytes, or holds control characters.
  case invalidName
}

/// A signature under a record.
package struct RecordSignature: Hashable, Comparable, Sendable {
  /// The signer: a device's id, or the recovery key.
  package let signer: SigningPublicKey
  /// The Ed25519 signature over ``Record/signedBytes(account:body:isGenesis:)``.
  package let signature: Signature

  /// Compares by signer, then by signature.
  package static func < (left: Self, right: Self) -> Bool {
    left.signer != right.signer ? left.signer < right.signer : left.signature < right.signature
  }
}

/// A membership record: a body, kept byte for byte, and signatures (`Docs/Protocol.md`,
/// "Membership"). Reading one checks its form, not its signatures.
///
/// Records with one body are one record. The envelope is not signed and has one form: signatures
/// ascending by signer, one for each.
package struct Record: Hashable, Sendable {
  /// The content of a record.
  package enum Kind: Hashable, Sendable {
    /// The account's root and its first device.
    case genesis(Genesis)
    /// A device.
    case certificate(Certificate)
    /// An epoch.
    case epoch(EpochRecord)
    /// An epoch's secret for one more device.
    case lockbox(LockboxRecord)
    /// The revocation of a device.
    case revocation(RevocationRecord)
    /// A new name for a device.
    case rename(RenameRecord)
    /// A kind of a later version; it is kept and passed on.
    case unknown
  }

  /// The BLAKE2b-256 of the body.
  package let id: Digest256
  /// The signed bytes.
  package let body: [UInt8]
  /// The content of the body.
  package let kind: Kind
  /// The signatures, ascending by signer, one for each. They may be forged: a ``Roster``
  /// checks them.
  package let signatures: [RecordSignature]

  /// Reads a record from any bytes.
  package init(decoding bytes: [UInt8]) throws(RecordError) {
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

  /// Keeps the smallest of several signatures of one signer.
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

  /// Returns the same record with other signatures.
  func with(signatures: [RecordSignature]) -> Record { Record(self, signatures: signatures) }

  private static func canonical(_ signatures: [RecordSignature]) -> [RecordSignature] {
    var result: [RecordSignature] = []
    for signature in signatures.sorted() where result.last?.signer != signature.signer {
      result.append(signature)
    }
    return result
  }

  /// The record's bytes; equal records have equal bytes.
  package var encoded: [UInt8] { wire.encodedBytes() }

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
