import KithCore
import KithCrypto
import Testing

@testable import Kith

/// How long sessions may hold the engine's lock, in virtual time.
struct SessionSharesTests {
  private let one: DeviceID
  private let other: DeviceID
  private let millisecond: UInt64 = 1_000_000

  init() throws {
    one = try DeviceID([UInt8](repeating: 1, count: 32))
    other = try DeviceID([UInt8](repeating: 2, count: 32))
  }

  @Test func aDeviceThatGoesOnHoldsItForHalfOfTheTime() {
    var shares = SessionShares()
    var (now, held, first): (UInt64, UInt64, Int) = (1_000, 0, 0)
    while now < 61_000 {
      now += 2
      held += 2
      if let verdict = shares.count(2 * millisecond, of: one, at: now) {
        first += verdict.isFirst ? 1 : 0
        #expect(verdict.pauseUntilMilliseconds > now)
        now = verdict.pauseUntilMilliseconds
      }
    }
    #expect((29_000...31_000).contains(held), "\(held) of 60,000 ms")
    #expect(first == 1)
  }

  @Test func aFloodOfRecordsHoldsItForAnEighthOfTheTime() {
    var shares = SessionShares()
    var (now, held): (UInt64, UInt64) = (1_000, 0)
    while now < 61_000 {
      now += 40
      held += 40
      let verdict = shares.count(40 * millisecond, of: one, withRecords: true, at: now)
      if let verdict { now = verdict.pauseUntilMilliseconds }
    }
    #expect((6_500...8_500).contains(held), "\(held) of 60,000 ms")
  }

  @Test func takingInAFullStoreIsNoTooMuch() {
    var shares = SessionShares()
    for _ in 0..<10 { #expect(shares.count(25 * millisecond, of: one, at: 5) == nil) }
    #expect(shares.count(25 * millisecond, of: one, at: 5) != nil)
    // Nobody else is slowed for it, and after a while it may again.
    #expect(shares.count(25 * millisecond, of: other, at: 5) == nil)
    for _ in 0..<10 { #expect(shares.count(25 * millisecond, of: one, at: 2_000) == nil) }
  }

  @Test func severalShareTheHalf() {
    var shares = SessionShares()
    for device in [one, other] { _ = shares.count(250 * millisecond, of: device, at: 5) }
    let alone = shares.count(10 * millisecond, of: one, at: 5)
    let beside = shares.count(10 * millisecond, of: other, at: 5)
    #expect(alone?.pauseUntilMilliseconds == 5 + 40)
    #expect(beside?.pauseUntilMilliseconds == 5 + 80)
  }

  @Test func oneLongMessageIsNotHeldAgainstWhatFollowsForEver() {
    var shares = SessionShares()
    let verdict = shares.count(60_000 * millisecond, of: nil, at: 5)
    #expect(
      verdict?.pauseUntilMilliseconds == 5 + SessionShares.longestPauseMilliseconds)
    #expect(shares.count(5 * millisecond, of: nil, at: 1_010) == nil)
  }
}
