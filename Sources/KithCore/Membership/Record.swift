package import KithCrypto

package enum RecordError: Error, Hashable, Sendable {
  case tooLarge(bytes: Int, limit: Int)
  case tooManySignatures(count: Int, limit: Int)
  /// The bytes are not a record, or a field has a wrong length, order or number.
  case malformed
  /// A device's name fails ``Certificate/isValidName(_:)``.
  case invalidName
}

package struct RecordSignature: Hashable, Comparable, Sendable {
  /// A device's id, or the recovery key.
  package let signer: SigningPublicKey
  /// Ed25519 over ``Record/signedBytes(account:body:isGenesis:)``.
  package let signature: Signature

  package static func < (left: Self, right: Self) -> Bool {
    left.signer != right.signer ? left.signer < right.signer : left.signature < right.signature
  }
}

/// A membership record: a body, kept byte for byte, and signatures (`Docs/Protocol.md`,
/// "Membership"). Reading one checks its form, not its signatures.
///
/// Records with one body are one record. The envelope is not signed and has one form.
package struct Record: Hashable, Sendable {
  package enum Kind: Hashable, Sendable {
    case genesis(Genesis)
    case certificate(Certificate)
    case epoch(EpochRecord)
    case lockbox(LockboxRecord)
    case revocation(RevocationRecord)
    case rename(RenameRecord)
    /// A kind of a later version; it is kept and relayed.
    case unknown
  }

  /// The BLAKE2b-256 of the body.
  package let id: Digest256
  /// The signed bytes.
  package let body: [UInt8]
  package let kind: Kind
  /// Ascending by signer, one for each. They may be forged: a ``Roster`` checks them.
  package let signatures: [RecordSignature]

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

  /// Keeps the smallest signature of each signer.
  init(body: [UInt8], signatures: [RecordSignature]) throws(RecordError) {
    kind = try RecordBody.decode(body)
    if kind == .unknown, body.count > MembershipLimits.unknownBodyBytes {
      throw .tooLarge(bytes: body.count, limit: MembershipLimits.unknownBodyBytes)
    }
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

  func with(signatures: [RecordSignature]) -> Record { Record(self, signatures: signatures) }

  private static func canonical(_ signatures: [RecordSignature]) -> [RecordSignature] {
    var result: [RecordSignature] = []
    for signature in signatures.sorted() where result.last?.signer != signature.signer {
      result.append(signature)
    }
    return result
  }

  /// Equal records have equal bytes.
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

/// A record with only its valid signatures. The costly check needs no state, so no lock.
struct CheckedRecord: Sendable {
  let record: Record

  /// - Complexity: one verification for each signature.
  init(_ record: Record, account: AccountID) {
    self.record = record.with(signatures: record.validSignatures(account: account))
  }
}

extension Record {
  /// Returns the bytes that a record's signatures cover (`Docs/Protocol.md`, "Membership").
  static func signedBytes(account: AccountID, body: [UInt8], isGenesis: Bool) -> [UInt8] {
    var bytes = Array("kith record v1".utf8)
    bytes.append(0)
    bytes += isGenesis ? [UInt8](repeating: 0, count: Digest256.byteCount) : account.bytes
    bytes += body
    return bytes
  }

  var isGenesis: Bool {
    if case .genesis = kind { true } else { false }
  }

  func certifies(_ device: DeviceID) -> Bool {
    if case .certificate(let certificate) = kind { certificate.device == device } else { false }
  }

  func signedBytes(account: AccountID) -> [UInt8] {
    Self.signedBytes(account: account, body: body, isGenesis: isGenesis)
  }

  package func signed(by key: borrowing SigningKey, account: AccountID) -> Record {
    let signature = RecordSignature(
      signer: key.publicKey, signature: key.sign(signedBytes(account: account)))
    return with(signatures: signatures.filter { $0.signer != signature.signer } + [signature])
  }

  /// Returns the valid signatures; it verifies only those that are not in `known`.
  func validSignatures(account: AccountID, known: [RecordSignature] = []) -> [RecordSignature] {
    let message = signedBytes(account: account)
    return signatures.filter {
      known.contains($0) || $0.signer.isValid($0.signature, for: message)
    }
  }

  /// The named signers; their signatures may be invalid.
  var signers: [SigningPublicKey] { signatures.map(\.signer) }
}

extension Record {
  /// Records that others depend on are sent first.
  static func isSentBefore(_ left: Record, _ right: Record) -> Bool {
    (left.kind.rank, left.id) < (right.kind.rank, right.id)
  }
}

extension Record.Kind {
  var rank: Int {
    switch self {
    case .genesis: 0
    case .certificate: 1
    case .revocation: 2
    case .epoch: 3
    case .lockbox: 4
    case .rename: 5
    case .unknown: 6
    }
  }
}

extension CheckedRecord {
  var isRevocation: Bool {
    if case .revocation = record.kind { true } else { false }
  }

  /// Whether it may be a step of a path.
  var isProof: Bool {
    switch record.kind {
    case .genesis, .certificate: true
    default: false
    }
  }
}

extension [Record] {
  /// Packs the records into messages, in this order.
  func messages() -> [[UInt8]] {
    var messages: [[UInt8]] = []
    var message = WireMessage()
    var bytes = 0
    func close() {
      guard bytes > 0 else { return }
      messages.append(message.encodedBytes())
      (message, bytes) = (WireMessage(), 0)
    }
    for record in self {
      let encoded = record.encoded
      if bytes + encoded.count > Limits.recordsMessageBytes { close() }
      guard let wire = try? WireRecord(serializedBytes: encoded) else { continue }
      message.records.records.append(wire)
      bytes += encoded.count
    }
    close()
    return messages
  }
}
