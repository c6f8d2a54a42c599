import Foundation
@testable import KithCrypto
import SwiftProtobuf

@testable import KithCore

/// Words that their devices signed, of the device's own vector and others.
extension MessageFiller {
  /// Signed in one message: signing takes longer than all else.
  private static let mostSigned = 16

  func fill(_ have: inout WireHave) {
    var signed = 0
    for index in have.words.indices { fill(&have.words[index], &signed) }
    if have.wordsDigest.count == 1, let byte = have.wordsDigest.first {
      have.wordsDigest = .init(repeating: byte, count: Digest128.byteCount)
    }
  }

  /// A signature of one byte names the device that signs; a small number of a device names the one
  /// that is said to.
  private func fill(_ group: inout WireWords, _ signed: inout Int) {
    if group.content.count == 1, let number = group.content.first {
      group.content = .init(content(number).body)
    }
    let all = FuzzAccount.shared.devices + [FuzzAccount.shared.stranger]
    let content = WordContent([UInt8](group.content))
    for index in group.said.indices {
      var said = group.said[index]
      if said.device < 256 { said.device = all[Int(said.device) % all.count].id.shortName }
      if said.signature.count == 1, let signer = said.signature.first, let content,
        signed < Self.mostSigned
      {
        signed += 1
        let word = Word(
          content, version: Word.Version(number: said.number, process: said.process),
          account: FuzzAccount.shared.id, keys: all[Int(signer) % all.count])
        said.signature = .init(word.signature.bytes)
      }
      group.said[index] = said
    }
  }

  /// By bits: whether of another store; whether of another vector than the device's own; the
  /// sequences of two members' chains, some of which nobody published.
  private func content(_ number: UInt8) -> WordContent {
    let another = StoreIdentifier("store 1") ?? FuzzAccount.store
    var latest: [ChainID: UInt64] = [:]
    for (author, sequence) in [(1, number >> 2 & 7), (2, number >> 5)] where sequence > 0 {
      let chain = ChainID(
        device: FuzzAccount.shared.devices[author].id,
        incarnation: Incarnation(rawValue: UInt64(author)))
      latest[chain] = UInt64(sequence)
    }
    let store = WordContent.Store(
      digest: WordContent.digest(of: number & 2 == 0 ? vector : latest), latest: latest)
    return WordContent([number & 1 == 0 ? FuzzAccount.store : another: store])
  }
}
