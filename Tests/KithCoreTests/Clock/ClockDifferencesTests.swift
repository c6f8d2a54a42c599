import KithCrypto
import Testing

@testable import KithCore

/// Which clocks are too far apart to exchange stores, and when that is news.
@Suite struct ClockDifferencesTests {
  private static let now: Int64 = 1_800_000_000_000
  private static let limit = Limits.clockDifferenceMilliseconds

  private func keeper(isSynchronised: Bool = false, at wall: Int64 = now) -> TimeKeeper {
    var keeper = TimeKeeper()
    keeper.update(at: Instant(wallMilliseconds: UInt64(wall), monotonicMilliseconds: 5_000))
    keeper.set(isSynchronised: isSynchronised, hasHardware: true)
    return keeper
  }

  private func claim(_ wall: Int64, isSynchronised: Bool = false) -> TimeKeeper.Claim {
    TimeKeeper.Claim(
      aheadOfMonotonic: wall - 5_000, isSynchronised: isSynchronised, foundAt: 5_000,
      heardAt: 5_000)
  }

  @Test(
    arguments: [
      (0, true, true), (limit, true, true), (limit + 1, false, false),
      // A delayed message seems behind, so it is judged only in a handshake.
      (-limit - 1, true, false), (-limit, true, true),
    ] as [(Int64, Bool, Bool)])
  func `clocks agree within the limit, and one behind ours always but in a handshake`(
    offset: Int64, agrees: Bool, agreesInHandshake: Bool
  ) {
    let (keeper, claim) = (keeper(), claim(Self.now + offset))
    #expect(keeper.offset(of: claim) == offset)
    #expect(keeper.agrees(with: claim, isHandshake: false) == agrees)
    #expect(keeper.agrees(with: claim, isHandshake: true) == agreesInHandshake)
  }

  @Test func `an impossible clock differs from none`() {
    let wrong = Int64(Limits.lastWallMilliseconds) + 1
    #expect(keeper().agrees(with: claim(wrong), isHandshake: true))
    #expect(keeper(at: 1_000).agrees(with: claim(Self.now), isHandshake: true))
  }

  @Test(
    arguments: [
      (true, true, .bothSynchronised), (false, false, .neitherSynchronised),
      (true, false, .theyAreTooFar), (false, true, .tooFar),
    ] as [(Bool, Bool, NodeStatus.ClockDifference.Outcome)])
  func `the outcome names the one whose clock is wrong`(
    ours: Bool, theirs: Bool, outcome: NodeStatus.ClockDifference.Outcome
  ) {
    #expect(keeper(isSynchronised: ours).outcome(isTheirsSynchronised: theirs) == outcome)
  }

  @Test func `of two synchronised clocks the nearer is followed`() {
    var keeper = keeper()
    keeper.note(
      claim(Self.now + 60_000, isSynchronised: true), of: deviceKeys(2).id, isHandshake: true)
    #expect(keeper.outcome(isTheirsSynchronised: true) == .anotherIsNearer)
  }

  @Test func `a difference is news if its outcome changes, and so is its end`() {
    var differences = ClockDifferences()
    let device = deviceKeys(2).id
    func note(_ milliseconds: Int64, _ outcome: NodeStatus.ClockDifference.Outcome) -> Bool {
      differences.note(
        NodeStatus.ClockDifference(device: device, milliseconds: milliseconds, outcome: outcome))
    }
    let news = [note(1, .tooFar), note(2, .tooFar), note(3, .bothSynchronised)]
    #expect(news == [true, false, true])
    #expect(differences.all.map(\.milliseconds) == [3])
    let ends = [differences.agree(with: device), differences.agree(with: device)]
    #expect(ends == [true, false])
    #expect(differences.all.isEmpty)
  }
}
