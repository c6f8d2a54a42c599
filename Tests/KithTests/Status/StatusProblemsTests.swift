import KithCore
import Testing

@testable import Kith

/// The problems that a node tells of its own knowledge.
@Suite("Problems of a status")
struct StatusProblemsTests {
  /// Before the release, and after 2200. `kith status` said no more than that it is not synchronised, or
  /// blamed the data.
  @Test(arguments: [0, 946_684_800_000, 7_258_118_400_001, 32_503_680_000_000] as [Int64])
  func `a clock that cannot be right is the problem, not the stamps`(milliseconds: Int64) {
    var status = NodeStatus(account: nil, device: nil)
    status.clock.milliseconds = milliseconds
    #expect(status.findings.isEmpty)
    status.clock.isWorthless = true
    status.clock.stampsAheadMilliseconds = 1_000_000
    let findings = status.findings
    #expect(findings.map(\.code) == [.clocksDiffer], "\(findings)")
    #expect(findings.first?.message.hasPrefix("This host's clock cannot be right") == true)
    // Another device's time is in use.
    status.clock.follows = .test
    #expect(status.findings.map(\.code) == [.dataAhead])
  }

  @Test func `a clock that was ahead leaves stamps ahead`() {
    var status = NodeStatus(account: nil, device: nil)
    status.clock.milliseconds = Int64(Software.releasedMilliseconds)
    // It is behind its data.
    status.clock.isWorthless = true
    status.clock.stampsAheadMilliseconds = 1_000_000
    let findings = status.findings
    #expect(findings.map(\.code) == [.dataAhead])
    #expect(findings.first?.message.contains("other devices refuse them") == true)
  }
}
