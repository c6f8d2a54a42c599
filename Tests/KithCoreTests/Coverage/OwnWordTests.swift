import KithCrypto
import Testing

@testable import KithCore

/// When a process makes a word of its own, and with which number.
@Suite struct OwnWordTests: CoverageSuite {
  func said(_ coverage: Coverage) -> Word.Version? { coverage.words[keys[0].id]?.version }

  @Test func `a number is the time, and above all words of the device`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    coverage.makeWord(at: instant(0, wall: 1_000))
    #expect(said(coverage) == Word.Version(number: 1_000, process: 1))
    cover(10, &coverage)
    coverage.makeWord(at: instant(1_000, wall: 900))
    #expect(said(coverage)?.number == 1_001, "the clock was set back")
    coverage.makeWord(at: instant(2_000, wall: 2_000))
    #expect(said(coverage)?.number == 1_001, "it says what is covered")
    #expect(receive([word(3, by: 0, process: 5, number: 7_000)], &coverage))
    coverage.makeWord(at: instant(40_000, wall: 2_000))
    #expect(said(coverage) == Word.Version(number: 7_001, process: 1))
  }

  @Test func `a process that hears a word of another one answers it, but not at once again`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    #expect(receive([word(3, by: 0, process: 5, number: 100)], &coverage))
    coverage.makeWord(at: instant(0))
    #expect(said(coverage) == Word.Version(number: 101, process: 1), "it said nothing before")
    #expect(receive([word(3, by: 0, process: 5, number: 102)], &coverage))
    let interval = Limits.haveIntervalMilliseconds
    coverage.makeWord(at: instant(interval - 1))
    #expect(said(coverage)?.process == 5, "two copies would answer each other without end")
    #expect(coverage.passesAt == interval)
    coverage.makeWord(at: instant(interval))
    #expect(said(coverage) == Word.Version(number: 103, process: 1))
    // It covers what the other said.
    let same = WordGroup.groups(of: coverage.words.values)[0].content
    let other = Word(
      same, version: Word.Version(number: 200, process: 5), account: account, keys: keys[0])
    #expect(receive([other], &coverage))
    coverage.makeWord(at: instant(3 * interval))
    #expect(said(coverage) == other.version)
  }

  @Test func `words are made at most so often, the more seldom the more members`() {
    for (count, pace) in [(2, 200), (12, 240)] as [(Int, UInt64)] {
      var coverage = coverage(of: 0, among: count)
      cover(1, &coverage)
      coverage.makeWord(at: instant(0))
      let first = said(coverage)
      cover(2, &coverage)
      coverage.makeWord(at: instant(pace - 1))
      #expect(said(coverage) == first && coverage.passesAt == pace)
      coverage.makeWord(at: instant(pace))
      #expect(said(coverage) != first)
      let second = said(coverage)
      cover(3, &coverage)
      coverage.makeWord(at: instant(pace), isPaced: false)
      #expect(said(coverage) != second)
    }
  }

  @Test func `a device whose last number somebody used says no more`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    #expect(receive([word(3, by: 0, process: 5, number: Word.lastNumber)], &coverage))
    #expect(coverage.isSilenced)
    coverage.makeWord(at: instant(0))
    #expect(said(coverage)?.number == Word.lastNumber && coverage.isSilenced)
  }

  /// Otherwise a process that is gone at once is known to one peer, and no word of the device's
  /// others counts there any more (simulator seed 300000275).
  @Test func `a process makes a word before its first Have, and introduces itself once a session`()
  {
    var coverage = coverage(of: 0, among: 3)
    cover(9, &coverage)
    let (second, stranger) = (SessionID(rawValue: 2), SessionID(rawValue: 3))
    for (session, index) in [(session, 1), (second, 2), (stranger, 7)] {
      coverage.begin(session, with: keys[index].id, process: 5, isMember: session != stranger)
    }
    // An earlier process said the same.
    let content = WordContent([
      store: WordContent.Store(
        digest: WordContent.digest(of: [chain: 9]), latest: [chain: 9])
    ])
    let earlier = Word(
      content, version: Word.Version(number: 50, process: 9), account: account, keys: keys[0])
    #expect(receive([earlier], &coverage))
    func told(on session: SessionID) -> ([Word.Version], Bool) {
      let told = coverage.wordsForHave(on: session, at: instant(0))
      return (told.words.flatMap { $0.said.map(\.version) }, told.digest == coverage.digest)
    }
    #expect(told(on: stranger) == ([], false))
    #expect(told(on: session) == ([Word.Version(number: 51, process: 1)], true))
    #expect(told(on: session) == ([], true))
    #expect(told(on: second) == ([Word.Version(number: 51, process: 1)], true))
  }
}
