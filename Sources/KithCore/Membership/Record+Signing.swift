package import KithCrypto

extension Record {
  /// Returns the bytes that a record's signatures cover: `kith record v1`, a zero byte, the account
  /// id (32 zero bytes for a genesis) and the body (`Docs/Protocol.md`, "Membership").
  static func signedBytes(account: AccountID, body: [UInt8], isGenesis: Bool) -> [UInt8] {
    var bytes = Array("kith record v1".utf8)
    bytes.append(0)
    bytes += isGenesis ? [UInt8](repeating: 0, count: Digest256.byteCount) : account.bytes
    bytes += body
    return bytes
  }

  /// Whether the record is an account's root.
  var isGenesis: Bool {
    if case .genesis = kind { true } else { false }
  }

  func certifies(_ device: DeviceID) -> Bool {
    if case .certificate(let certificate) = kind { certificate.device == device } else { false }
  }

  /// Returns the bytes that this record's signatures cover in an account.
  func signedBytes(account: AccountID) -> [UInt8] {
    Self.signedBytes(account: account, body: body, isGenesis: isGenesis)
  }

  /// Returns the record with one more signature.
  package func signed(by key: borrowing SigningKey, account: AccountID) -> Record {
    let signature = RecordSignature(
      signer: key.publicKey, signature: key.sign(signedBytes(account: account)))
    return with(signatures: signatures.filter { $0.signer != signature.signer } + [signature])
  }

  /// Returns the signatures that are valid in an account.
  ///
  /// - Complexity: one verification for each signature that is not in `known`.
  func validSignatures(account: AccountID, known: [RecordSignature] = []) -> [RecordSignature] {
    let message = signedBytes(account: account)
    return signatures.filter {
      known.contains($0) || $0.signer.isValid($0.signature, for: message)
    }
  }

  /// The named signers, whether their signatures are valid or not.
  var signers: [SigningPublicKey] { signatures.map(\.signer) }
}
