package import KithCrypto

/// What a device says that it covers of a store, signed by it, so that others pass it on and nobody
/// but the device can say it (Docs/Decisions/overlay.md).
package struct Statement: Hashable, Sendable {
  /// Who covers it.
  package let device: DeviceID
  package let store: StoreIdentifier
  /// Of two statements of a device about a store the later counts.
  package let clock: HybridTime
  /// The process that said it. While one runs its vector only rises; a later one may have been
  /// started from an old copy, and cover less.
  package let process: UInt64
  /// The digest of the whole vector: whoever has the same one knows all of it.
  package let vectorDigest: Digest256
  /// What rose last, so that something is known where vectors are not equal yet.
  package let risen: [ChainID: UInt64]
  /// The encoded body, as signed.
  let body: [UInt8]
  let signature: Signature

  /// Says and signs what a device covers.
  init(
    _ store: StoreIdentifier, clock: HybridTime, process: UInt64, vectorDigest: Digest256,
    risen: [ChainID: UInt64], account: AccountID, keys: DeviceKeys
  ) {
    device = keys.id
    self.store = store
    self.clock = clock
    self.process = process
    self.vectorDigest = vectorDigest
    self.risen = risen
    var wire = WireStatementBody()
    wire.device = .init(device.bytes)
    wire.store = store.rawValue
    wire.clock = clock.rawValue
    wire.process = process
    wire.vectorDigest = .init(vectorDigest.bytes)
    wire.risen = risen.sorted { $0.key < $1.key }.map { WireVectorEntry($0.key, $0.value) }
    body = wire.encodedBytes()
    signature = keys.signing.sign(Self.signedBytes(account: account, body: body))
  }

  /// Nil where it is malformed. The signature is not looked at; see ``isSigned(in:)``.
  init?(_ wire: WireStatement) {
    guard wire.body.count <= Limits.statementBytes,
      let signature = try? Signature(wire.signature),
      let decoded = try? WireStatementBody(serializedBytes: wire.body),
      let device = try? DeviceID(decoded.device), let store = StoreIdentifier(decoded.store),
      let digest = try? Digest256(decoded.vectorDigest),
      decoded.risen.count <= Limits.statementEntries,
      let risen = [ChainID: UInt64](decoded.risen)
    else { return nil }
    self.device = device
    self.store = store
    clock = HybridTime(rawValue: decoded.clock)
    process = decoded.process
    vectorDigest = digest
    self.risen = risen
    body = [UInt8](wire.body)
    self.signature = signature
  }

  /// Whether the device that it names signed it.
  func isSigned(in account: AccountID) -> Bool {
    device.isValid(signature, for: Self.signedBytes(account: account, body: body))
  }

  var wire: WireStatement {
    var wire = WireStatement()
    wire.body = .init(body)
    wire.signature = .init(signature.bytes)
    return wire
  }

  /// More bytes than it takes in a message.
  var sizeBound: Int { body.count + Signature.byteCount + 16 }

  /// What the device signs: the domain, a zero byte, the account id and the body.
  static func signedBytes(account: AccountID, body: [UInt8]) -> [UInt8] {
    Array("kith statement v1".utf8) + [0] + account.bytes + body
  }

  /// What stands for a vector in statements: over its chains in order, of each the device's id, the
  /// incarnation and the sequence, both as 64-bit big-endian.
  ///
  /// - Complexity: O(*n* log *n*) in the chains.
  static func digest(of vector: [ChainID: UInt64]) -> Digest256 {
    var hasher = Blake2b.Hasher()
    for (chain, sequence) in vector.sorted(by: { $0.key < $1.key }) {
      hasher.update(chain.device)
      for number in [chain.incarnation.rawValue, sequence] {
        hasher.update(withUnsafeBytes(of: number.bigEndian, Array.init))
      }
    }
    return hasher.digest256()
  }
}

extension ProcessID {
  /// As statements name a process.
  var tag: UInt64 { digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
