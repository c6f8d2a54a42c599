import Foundation
@testable import KithCrypto
import SwiftProtobuf

@testable import KithCore

/// Puts data that no mutation guesses into a message: a field of one byte names a device, a record,
/// a change set that a member signed, a word's signer, or the device's own digest.
struct MessageFiller {
  let digest: Digest256?
  let vector: [ChainID: UInt64]

  /// Change sets as members publish them, with flaws among them.
  static let changeSets: [ChangeSet] = {
    var sets: [ChangeSet] = []
    for author in 1...2 {
      for sequence in 1...4 {
        let moment = clock(sequence * 100 + author)
        let stamp = Stamp(clock: moment, device: FuzzAccount.shared.devices[author].id)
        let entries = (0..<sequence).map { number in
          Entry(
            key: Key(ForgedChangeSet.keys[(number + author) % 6]), stamp: stamp,
            content: number == 2
              ? .removed : .value(text(ForgedChangeSet.sizes[(number + sequence) % 4])),
            claim: Claim(clock: moment, device: stamp.device, group: UInt32(number & 1)))
        }
        sets.append(
          FuzzAuthor(author, incarnation: UInt64(author)).seal(
            entries.map { $0.plaintext() }, sequence: UInt64(sequence), clock: moment))
      }
    }
    let lone = [[UInt8]](repeating: [], count: 1)
    sets.append(FuzzAuthor(1, incarnation: 1).seal(lone, sequence: 2, clock: clock(7)))
    sets.append(FuzzAuthor(0, incarnation: 3).seal([], sequence: 3, clock: clock(8)))
    sets.append(FuzzAuthor(2, incarnation: 2).seal([], sequence: 9, clock: clock(70_000)))
    sets.append(FuzzAuthor(2, incarnation: 5).seal([], sequence: 1 << 53, clock: clock(9)))
    return sets
  }()

  /// The message with its gaps filled; nil if the bytes are no message.
  func fill(_ bytes: [UInt8]) -> [UInt8]? {
    guard var wire = try? WireMessage(serializedBytes: bytes) else { return nil }
    switch wire.body {
    case .records:
      for index in wire.records.records.indices { fill(&wire.records.records[index]) }
    case .have:
      for index in wire.have.stores.indices { fill(&wire.have.stores[index]) }
      fill(&wire.have)
    case .batch:
      if wire.batch.store.isEmpty { wire.batch.store = FuzzAccount.store.rawValue }
      for index in wire.batch.changeSets.indices { fill(&wire.batch.changeSets[index]) }
      for index in wire.batch.covers.indices { fill(&wire.batch.covers[index].device) }
    case .addresses:
      for index in wire.addresses.devices.indices { fill(&wire.addresses.devices[index].device) }
    case .done, nil: break
    }
    return wire.encodedBytes()
  }

  private func fill(_ device: inout Data) {
    guard device.count == 1, let number = device.first else { return }
    let all = FuzzAccount.shared.devices + [FuzzAccount.shared.stranger]
    device = .init(all[Int(number) % all.count].id.bytes)
  }

  private func fill(_ record: inout WireRecord) {
    guard record.body.count == 1, let number = record.body.first else { return }
    let all = FuzzAccount.shared.records + FuzzAccount.shared.foreign
    guard let whole = try? WireRecord(serializedBytes: all[Int(number) % all.count].encoded) else {
      fatalError("a record that nobody reads")
    }
    record.body = whole.body
    if record.signatures.isEmpty { record.signatures = whole.signatures }
  }

  private func fill(_ have: inout WireStoreHave) {
    if have.store.isEmpty { have.store = FuzzAccount.store.rawValue }
    if !have.hasPolicy {
      let policy = FuzzAccount.policy
      have.policy.totalBytes = UInt64(policy.totalBytes)
      have.policy.keys = UInt32(policy.keys)
      have.policy.keyBytes = UInt32(policy.keyBytes)
      have.policy.valueBytes = UInt64(policy.valueBytes)
    }
    if have.digest.count == 1, let digest { have.digest = .init(digest.bytes) }
    for index in have.vector.indices { fill(&have.vector[index].device) }
  }

  private func fill(_ changeSet: inout WireChangeSet) {
    guard changeSet.header.count == 1, let number = changeSet.header.first else { return }
    let whole = Self.changeSets[Int(number) % Self.changeSets.count].wire
    changeSet.header = whole.header
    if changeSet.signature.isEmpty { changeSet.signature = whole.signature }
    if changeSet.entries.isEmpty { changeSet.entries = whole.entries }
    for index in changeSet.entries.indices where changeSet.entries[index].box.isEmpty {
      let entry = changeSet.entries[index].index
      if let box = whole.entries.first(where: { $0.index == entry })?.box {
        changeSet.entries[index].box = box
      }
    }
  }
}
