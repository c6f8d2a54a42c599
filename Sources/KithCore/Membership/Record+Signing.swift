package import KithCrypto

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
