import Foundation
@testable import KithCrypto
import SwiftProtobuf

@testable import KithCore

/// Statements that their devices signed: of processes that started at few moments, about the
/// device's own vector and others.
extension MessageFiller {
  /// Signed in one message: signing takes longer than all else.
  private static let mostSigned = 16

  func fill(_ have: inout WireHave) {
    have.started = Self.moment(have.started)
    var signed = 0
    for index in have.statements.indices {
      fill(&have.statements[index], &signed)
    }
    for index in have.held.indices {
      if have.held[index].store.isEmpty { have.held[index].store = FuzzAccount.store.rawValue }
      guard have.held[index].digest.count == 1, let byte = have.held[index].digest.first else {
        continue
      }
      have.held[index].digest = .init(repeating: byte, count: Digest128.byteCount)
    }
  }

  /// A signature of one byte names the device that signs; a small number of a device names the one
  /// that is said to.
  private func fill(_ group: inout WireStatements, _ signed: inout Int) {
    if group.extent.count == 1, let number = group.extent.first {
      group.extent = .init(extent(number).body)
    }
    let all = FuzzAccount.shared.devices + [FuzzAccount.shared.stranger]
    let extent = Extent([UInt8](group.extent), isSigned: true)
    for index in group.said.indices {
      var said = group.said[index]
      if said.device < 256 { said.device = all[Int(said.device) % all.count].id.shortName }
      said.started = Self.moment(said.started)
      if said.signature.count == 1, let signer = said.signature.first, let extent,
        signed < Self.mostSigned
      {
        signed += 1
        let age = StatementAge(
          started: HybridTime(rawValue: said.started), number: said.number)
        let statement = Statement(
          extent, age: age, account: FuzzAccount.shared.id, keys: all[Int(signer) % all.count])
        said.signature = .init(statement.signature.bytes)
      }
      group.said[index] = said
    }
  }

  /// By bits: whether of another store; whether of another vector than the device's own; the
  /// sequences of two members' chains, some of which nobody published.
  private func extent(_ number: UInt8) -> Extent {
    let another = StoreIdentifier("store 1") ?? FuzzAccount.store
    var entries: [ChainID: UInt64] = [:]
    for (author, sequence) in [(1, number >> 2 & 7), (2, number >> 5)] where sequence > 0 {
      let chain = ChainID(
        device: FuzzAccount.shared.devices[author].id,
        incarnation: Incarnation(rawValue: UInt64(author)))
      entries[chain] = UInt64(sequence)
    }
    return Extent(
      number & 1 == 0 ? FuzzAccount.store : another,
      digest: Extent.digest(of: number & 2 == 0 ? vector : entries), entries: entries)
  }

  /// Small numbers name moments around the beginning, so that equal ones are met; 0 stays.
  private static func moment(_ number: UInt64) -> UInt64 {
    number == 0 || number > 255 ? number : clock((Int(number) - 128) * 1_000).rawValue
  }
}
