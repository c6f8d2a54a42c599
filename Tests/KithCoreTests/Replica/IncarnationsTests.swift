import KithCrypto
import Testing

@testable import KithCore

/// When a device takes a new incarnation, and when it has none left.
@Suite struct IncarnationsTests {
  private func incarnations(_ range: Range<Int>) -> Set<Incarnation> {
    Set(range.map { Incarnation(rawValue: UInt64($0)) })
  }

  private func process(_ number: UInt8) -> ProcessID { ProcessID(Digest128 { $0[0] = number }) }

  @Test func `the first is no news, another is, and beyond the limit there is none`() {
    var incarnations = Incarnations()
    #expect(incarnations.current == nil && !incarnations.areSpent([]))
    let first = incarnations.take(Incarnation(rawValue: 100), used: [])
    #expect(first == .first)
    #expect(incarnations.current == Incarnation(rawValue: 100))
    let limit = Limits.incarnations
    let another = incarnations.take(
      Incarnation(rawValue: 101), used: self.incarnations(0..<limit - 1))
    #expect(another == .another)
    let none = incarnations.take(Incarnation(rawValue: 102), used: self.incarnations(0..<limit))
    #expect(none == .noneLeft)
    #expect(incarnations.current == Incarnation(rawValue: 102), "so that a restart keeps it")
  }

  @Test func `the one in use does not count against the limit`() {
    let used = incarnations(0..<Limits.incarnations)
    #expect(!Incarnations(current: used.first).areSpent(used))
    #expect(Incarnations(current: Incarnation(rawValue: 100)).areSpent(used))
    #expect(Incarnations().areSpent(used))
  }

  @Test func `each process of a copy counts once, and not more than there are incarnations`() {
    var incarnations = Incarnations()
    let own = process(0)
    let met = (0...UInt8(Limits.incarnations) + 1).map {
      incarnations.meetsClone(process($0), as: own)
    }
    #expect(met == [false] + Array(repeating: true, count: Limits.incarnations) + [false])
    let again = incarnations.meetsClone(process(1), as: own)
    #expect(!again)
  }
}
