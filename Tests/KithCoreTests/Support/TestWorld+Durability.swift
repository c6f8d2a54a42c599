import KithCrypto
import Testing

@testable import KithCore

/// Checks, at every step of every test, that data is on the disk before an effect that depends on
/// it: a `persist` precedes each effect that depends on it, and a crash undoes nothing that others
/// rely on.
extension TestWorld {
  /// The content of a message, and every belief that it causes in others, is committed before its
  /// first byte is sent.
  func checkIsDurable(_ message: [UInt8], on device: Device) {
    switch InboundMessage(decoding: message, account: account)?.body {
    case .batch(let part):
      for case .sound(let changeSet) in part.changeSets {
        checkIsKept(changeSet, part.store, device)
      }
    case .have(let have):
      for store in have.stores {
        let vector = device.disk.stores[store.store]?.vector ?? [:]
        let isDurable = store.vector.allSatisfy { chain, sequence in
          vector[chain] ?? 0 >= sequence
        }
        #expect(isDurable, "\(device.name) told what it covers before that was committed")
      }
    case .records(let records):
      #expect(
        records.allSatisfy { device.disk.records[$0.record.id] != nil },
        "\(device.name) sent records before they were committed")
    case .addresses, .done, nil: break
    }
  }

  /// The change set, or a later one of its chain, is on the disk; and its author gave the sequence
  /// to no other.
  private func checkIsKept(
    _ changeSet: ChangeSet, _ store: StoreIdentifier, _ device: Device
  ) {
    let chain = changeSet.header.chain
    let kept = (device.disk.stores[store]?.changeSets ?? [:]).keys.lazy
      .filter { $0.device == chain.device && $0.incarnation == chain.incarnation }
      .map(\.sequence).max()
    #expect(
      kept ?? 0 >= changeSet.header.sequence, "\(device.name) sent before it was committed")
    guard chain.device == device.keys.id else { return }
    let digest = changeSet.reference.digest
    let given = device.given[store]?[chain]?[changeSet.header.sequence]
    #expect(given ?? digest == digest, "\(device.name) gave a sequence twice")
    device.given[store, default: [:]][chain, default: [:]][changeSet.header.sequence] = digest
  }

  /// A write that a program is about to be told is durable is on the disk: as a draft, or
  /// published.
  func checkIsDurable(_ device: Device) {
    for (identifier, store) in device.replica.stores {
      let disk = device.disk.stores[identifier]
      let published = store.log.changeSets.keys.filter { $0.device == device.keys.id }
      #expect(
        published.allSatisfy { disk?.changeSets[$0] != nil }
          && store.drafts.drafts.allSatisfy { disk?.drafts[$0.ordinal] != nil }
          && store.latestDraft.map { disk?.drafts[$0.ordinal] == $0.encoded() } ?? true,
        "\(device.name) acknowledged before it committed")
    }
  }

  /// The clock is persisted with the data that it stamped, never apart (`Docs/Protocol.md`,
  /// "Clocks, stamps, claims").
  func checkClock(_ mutations: [Mutation], on device: Device) {
    for mutation in mutations {
      let clock: HybridTime? =
        switch mutation {
        case .put(.store(_, .changeSet), let row):
          StoredChangeSet(row: row).flatMap { try? ChangeSetHeader(decoding: $0.header) }?.clock
        case .put(.store(_, .draft(let ordinal)), let bytes):
          Draft(ordinal: ordinal, decoding: bytes)?.clock
        default: nil
        }
      // The clock gave out no adopted stamp.
      guard let clock, !clock.isAdopted else { continue }
      #expect(clock <= device.disk.clock, "\(device.name) forgot the clock of what it stamped")
    }
  }
}
