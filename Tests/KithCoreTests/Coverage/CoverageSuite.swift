import KithCrypto

@testable import KithCore

/// Devices, and what they say of one store, for the suites of `Coverage`.
protocol CoverageSuite {}

private let deviceKeysOfSuite = (0..<12 as Range<UInt64>).map { deviceKeys(40 + $0) }

extension CoverageSuite {
  var store: StoreIdentifier { TestWorld.store }
  var account: AccountID { AccountID(Blake2b.digest256([])) }
  var keys: [DeviceKeys] { deviceKeysOfSuite }
  var chain: ChainID { ChainID(device: keys[0].id, incarnation: Incarnation(rawValue: 1)) }
  var session: SessionID { SessionID(rawValue: 1) }

  /// Of the first device it is process 1, of the next one 2 …
  func coverage(of index: Int, among count: Int) -> Coverage {
    let process = ProcessID(Digest128 { $0[7] = UInt8(index + 1) })
    var coverage = Coverage(account: account, keys: keys[index], process: process)
    coverage.setMembers(keys.prefix(count).map(\.id))
    return coverage
  }

  func own(_ sequence: UInt64) -> Coverage.Own {
    let published = ChangeSetLog.Published(clock: .zero, chain: chain, covered: sequence)
    return Coverage.Own(
      extent: Coverage.Extent(vector: [chain: sequence]), latest: [published])
  }

  func instant(_ milliseconds: UInt64, wall: UInt64 = 0) -> Instant {
    Instant(wallMilliseconds: wall, monotonicMilliseconds: milliseconds)
  }

  /// A word that names a sequence, or says that the vector is that of a device which covers 9.
  func word(
    _ sequence: UInt64?, by index: Int = 1, process: UInt64, number: UInt64, isBelow: Bool = false
  ) -> Word {
    let said = WordContent.Store(
      digest: WordContent.digest(of: sequence == nil ? [chain: 9] : [:]),
      latest: sequence.map { [chain: $0] } ?? [:], isBelow: isBelow)
    return Word(
      WordContent([store: said]), version: Word.Version(number: number, process: process),
      account: account, keys: keys[index])
  }

  func receive(_ words: [Word], _ coverage: inout Coverage, on session: SessionID? = nil)
    -> Bool
  {
    coverage.receive(WordGroup.groups(of: words), on: session, at: 0, with: nil)
  }

  /// Has it cover a chain through a sequence.
  func cover(_ sequence: UInt64, _ coverage: inout Coverage) {
    coverage.noteChange(of: store, at: 0)
    coverage.look(at: [store]) { _ in own(sequence) }
  }
}
