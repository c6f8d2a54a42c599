import KithCrypto

@testable import KithCore

/// A chain of a device whose id is this number.
func chain(_ number: UInt8) -> ChainID {
  let device = DeviceID { $0.initializeMemory(as: UInt8.self, repeating: number) }
  return ChainID(device: device, incarnation: Incarnation(rawValue: 1))
}

/// A change set with boxes of these sizes, and no signature: a log checks none. Two of one sequence
/// with different marks are a fork.
func unsigned(
  _ sequence: UInt64, of chain: ChainID, boxes: [Int] = [10], mark: UInt8 = 0,
  clock: HybridTime = .zero
) -> ChangeSet {
  let header = ChangeSetHeader(
    storeTag: Digest128 { $0[0] = mark }, epoch: EpochID(Blake2b.digest256([])), chain: chain,
    sequence: sequence, clock: clock, noncePrefix: NoncePrefix { _ in }, entryDigests: [])
  var stored = StoredChangeSet(header: header.encoded(), signature: [])
  for (index, bytes) in boxes.enumerated() {
    stored.entries[UInt32(index)] = [UInt8](repeating: 0, count: bytes)
  }
  return ChangeSet(header: header, stored: stored)
}
