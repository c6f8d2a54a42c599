import KithCrypto
import Testing

@testable import KithCore

/// The rule by which words and sessions count, without a replica.
@Suite struct CoverageTests: CoverageSuite {
  /// An event of one chain that device 0 hears of device 1.
  private enum Event {
    /// A session with a process begins.
    case begin(UInt64)
    case end
    /// The peer tells its vector.
    case tells(UInt64, isWhole: Bool = false)
    /// A word comes.
    case says(UInt64?, process: UInt64, number: UInt64)
    /// Device 0 covers so much.
    case covers(UInt64)
    case isRevoked
  }

  /// At first device 0 covers the chain through 9.
  @Test func `the rule, event by event`() {
    let cases: [(String, [Event], UInt64?)] = [
      ("nothing is known", [], nil),
      ("a peer tells", [.begin(5), .tells(3, isWhole: true)], 3),
      ("a peer tells more", [.begin(5), .tells(3, isWhole: true), .tells(4)], 4),
      ("its late message lowers nothing", [.begin(5), .tells(4, isWhole: true), .tells(3)], 4),
      (
        "a whole vector replaces all",
        [.begin(5), .tells(4, isWhole: true), .tells(3, isWhole: true)], 3
      ),
      ("nothing counts before a whole vector", [.begin(5), .tells(4)], nil),
      ("what a peer told stays", [.begin(5), .tells(3, isWhole: true), .end], 3),
      (
        "a session of another process replaces it",
        [.begin(5), .tells(4, isWhole: true), .end, .begin(6), .tells(3, isWhole: true)], 3
      ),
      ("a word", [.says(3, process: 5, number: 1)], 3),
      ("a word of the same vector", [.says(nil, process: 5, number: 1)], 9),
      ("no more than is known here", [.says(1_000, process: 5, number: 1)], 9),
      ("until more is", [.says(1_000, process: 5, number: 1), .covers(12)], 12),
      ("a word compared later", [.covers(8), .says(nil, process: 5, number: 1), .covers(9)], 9),
      (
        "words of a process add up",
        [.says(4, process: 5, number: 1), .says(3, process: 5, number: 2)], 4
      ),
      (
        "an earlier word is passed over",
        [.says(3, process: 5, number: 2), .says(4, process: 5, number: 1)], 3
      ),
      (
        "a word of another process replaces all",
        [.says(4, process: 5, number: 7), .says(3, process: 2, number: 8)], 3
      ),
      (
        "of one number that of the higher process counts",
        [
          .says(4, process: 5, number: 7), .says(3, process: 6, number: 7),
          .says(8, process: 5, number: 7),
        ], 3
      ),
      (
        "a word of the process at the other end adds up",
        [.begin(5), .tells(3, isWhole: true), .says(4, process: 5, number: 1)], 4
      ),
      (
        "beside a session another process counts, too: it covers less",
        [.begin(5), .tells(4, isWhole: true), .says(3, process: 8, number: 1)], 3
      ),
      (
        "it covers more",
        [.begin(5), .tells(3, isWhole: true), .says(nil, process: 8, number: 1)], 3
      ),
      (
        "it covers more, once the session told it",
        [.begin(5), .tells(3, isWhole: true), .says(nil, process: 8, number: 1), .tells(4)], 4
      ),
      (
        "what the session tells does not replace it",
        [
          .begin(5), .tells(3, isWhole: true), .says(2, process: 8, number: 1),
          .tells(4, isWhole: true),
        ], 2
      ),
      (
        "until the session ends",
        [.begin(5), .tells(3, isWhole: true), .says(4, process: 8, number: 1), .end], 4
      ),
      (
        "until the session's process speaks again",
        [
          .begin(5), .tells(4, isWhole: true), .says(3, process: 8, number: 1),
          .says(2, process: 5, number: 2),
        ], 4
      ),
      (
        "a session replaces a word of another process, for good",
        [.says(4, process: 8, number: 1), .begin(5), .tells(3, isWhole: true), .covers(9), .end], 3
      ),
      (
        "a session replaces a word",
        [
          .says(4, process: 5, number: 1), .begin(5), .tells(3, isWhole: true),
        ], 3
      ),
      ("a revoked device", [.says(3, process: 5, number: 1), .isRevoked], nil),
      (
        "its words do not count again",
        [.says(3, process: 5, number: 1), .isRevoked, .says(3, process: 5, number: 2)], nil
      ),
    ]
    for (name, events, wanted) in cases {
      var coverage = coverage(of: 0, among: 2)
      cover(9, &coverage)
      for event in events {
        switch event {
        case .begin(let process):
          coverage.begin(session, with: keys[1].id, process: process, isMember: true)
        case .end: coverage.end(session)
        case .tells(let sequence, let isWhole):
          coverage.receive(
            Coverage.Extent(vector: [chain: sequence]), of: store, isWhole: isWhole, on: session,
            isKnown: { $0 == chain })
        case .says(let sequence, let process, let number):
          let isSound = receive([word(sequence, process: process, number: number)], &coverage)
          #expect(isSound, "\(name)")
        case .covers(let sequence): cover(sequence, &coverage)
        case .isRevoked:
          coverage.setMembers([keys[0].id])
          coverage.forget([keys[1].id])
        }
      }
      let known = coverage.covered(by: keys[1].id, of: store)[chain]
      #expect(known == wanted, "\(name)")
      #expect(coverage.covers([chain: 3], of: store, keys[1].id) == (wanted ?? 0 >= 3))
    }
  }

  /// Simulator seeds 350000027, 350000149 and 350000236: nothing rose after a start, and with more
  /// chains than a word names a process never knew that others have what it published.
  @Test func `a process that starts compares words with the vectors on its disk`() {
    var coverage = coverage(of: 0, among: 2)
    #expect(receive([word(nil, process: 5, number: 1)], &coverage))
    coverage.look(at: [store]) { _ in own(9) }
    #expect(coverage.covers([chain: 9], of: store, keys[1].id))
  }

  @Test func `a device below its horizon has nothing, until it says otherwise`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    func has() -> Bool { coverage.covers([chain: 9], of: store, keys[1].id) }
    #expect(receive([word(nil, process: 5, number: 1, isBelow: true)], &coverage))
    #expect(!has() && coverage.areOthersBelow(in: store))
    cover(9, &coverage)
    #expect(!has(), "no other word came")
    #expect(receive([word(nil, process: 5, number: 2)], &coverage))
    #expect(has())
    coverage.begin(session, with: keys[1].id, process: 5, isMember: true)
    coverage.receive(
      Coverage.Extent(vector: [chain: 9], isBelow: true), of: store, isWhole: true, on: session,
      isKnown: { $0 == chain })
    #expect(!has())
    #expect(receive([word(nil, process: 8, number: 3)], &coverage))
    #expect(!has(), "both must say it")
  }

  @Test func `the device knows whether all others cover a change set, and what each lacks`() {
    var coverage = coverage(of: 0, among: 3)
    let changeSet = unsigned(3, of: chain).reference
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == nil)
    for (peer, covered) in [(1, 2), (2, 9)] as [(Int, UInt64)] {
      let session = SessionID(rawValue: UInt64(peer))
      coverage.begin(session, with: keys[peer].id, process: 5, isMember: true)
      coverage.receive(
        Coverage.Extent(vector: [chain: covered]), of: store, isWhole: true, on: session,
        isKnown: { $0 == chain })
    }
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.coveredByAllOthers(of: store)(unsigned(2, of: chain).reference))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == 7)
    #expect(coverage.lacking([chain: 8], of: store, keys[2].id) == 0)
  }

  @Test func `of what comes in a device's name nothing counts but what it signed`() {
    var coverage = coverage(of: 0, among: 2)
    let truth = word(3, process: 5, number: 1)
    var group = WordGroup.groups(of: [truth])[0]
    group.said[0].version.number = 2
    let isSound = coverage.receive([group], at: 0, with: nil)
    #expect(!isSound && coverage.words.isEmpty)
    // A stranger's is passed over.
    #expect(receive([word(3, by: 7, process: 5, number: 1)], &coverage))
    #expect(coverage.words.isEmpty)
    #expect(receive([truth], &coverage))
    #expect(coverage.words.count == 1)
  }

  @Test func `of the stores that a member invents those of its latest word are known`() throws {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    for number in 1...50 as ClosedRange<UInt64> {
      let invented = try #require(StoreIdentifier("com.example.Invented\(number)"))
      let said = WordContent.Store(digest: WordContent.digest(of: [chain: 9]))
      let word = Word(
        WordContent([store: said, invented: said]),
        version: Word.Version(number: number, process: 5), account: account, keys: keys[1])
      #expect(receive([word], &coverage))
      #expect(coverage.known[keys[1].id]?.stores.count == 2)
    }
    #expect(coverage.covers([chain: 9], of: store, keys[1].id))
  }

  // MARK: Left behind

  @Test func `a device that does not cover old change sets is reported once as left behind`() {
    var coverage = coverage(of: 0, among: 3)
    let vectors = [store: [chain: 1 as UInt64]]
    func look(_ now: UInt64, _ connected: Set<DeviceID> = []) -> [DeviceID]? {
      coverage.findLeftBehind(at: now, connected: connected, vectors: { vectors })
    }
    cover(1, &coverage)
    let both = [keys[1].id, keys[2].id].sorted()
    let patience = Limits.leftBehindMilliseconds
    #expect(look(0) == nil)
    #expect(look(patience) == both)
    #expect(look(patience + 1) == nil, "not looked at so soon")
    #expect(look(2 * patience) == nil, "no news")
    #expect(look(3 * patience, [keys[1].id]) == [keys[2].id])
    #expect(receive([word(1, by: 2, process: 5, number: 1)], &coverage))
    #expect(look(4 * patience, [keys[1].id]) == [])
    coverage.noteChange(of: store, at: 5 * patience)
    #expect(look(5 * patience) == nil, "not old yet")
  }
}
