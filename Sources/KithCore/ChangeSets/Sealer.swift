package import KithCrypto

/// Seals and signs this device's change sets (`Docs/Protocol.md`, "Entries and change sets").
package struct Sealer {
  /// Precomputed for this device and the epoch.
  let box: SharedBox
  let storeTag: Digest128
  let epoch: EpochID
  let chain: ChainID
  let account: AccountID
  let keys: DeviceKeys

  package init(
    box: SharedBox, storeTag: Digest128, epoch: EpochID, chain: ChainID, account: AccountID,
    keys: DeviceKeys
  ) {
    self.box = box
    self.storeTag = storeTag
    self.epoch = epoch
    self.chain = chain
    self.account = account
    self.keys = keys
  }

  /// Cuts entries into parts that each fit into one change set.
  static func parts(
    of entries: [(entry: Entry, plaintext: [UInt8])]
  ) -> [[(entry: Entry, plaintext: [UInt8])]] {
    var parts: [[(entry: Entry, plaintext: [UInt8])]] = []
    var bytes = 0
    for entry in entries {
      if let last = parts.indices.last, parts[last].count < Limits.entriesPerChangeSet,
        bytes + entry.plaintext.count <= Limits.changeSetBytes
      {
        parts[last].append(entry)
      } else {
        parts.append([entry])
        bytes = 0
      }
      bytes += entry.plaintext.count
    }
    return parts
  }

  package func seal(
    _ plaintexts: [[UInt8]], sequence: UInt64, clock: HybridTime, noncePrefix: NoncePrefix
  ) -> ChangeSet {
    var entries: [UInt32: [UInt8]] = [:]
    var digests: [Digest256] = []
    for (index, plaintext) in plaintexts.enumerated() {
      let index = UInt32(index)
      let sealed = box.seal(plaintext, nonce: BoxNonce(prefix: noncePrefix, index: index))
      entries[index] = sealed
      digests.append(Blake2b.digest256(sealed))
    }
    let header = ChangeSetHeader(
      storeTag: storeTag, epoch: epoch, chain: chain, sequence: sequence, clock: clock,
      noncePrefix: noncePrefix, entryDigests: digests)
    let bytes = header.encoded()
    let signature = keys.signing.sign(
      ChangeSetHeader.signedBytes(account: account, header: bytes))
    return ChangeSet(
      header: header,
      stored: StoredChangeSet(header: bytes, signature: signature.bytes, entries: entries))
  }
}
