import Kith
import Testing

@testable import KithTesting

/// Time in which devices only repeat what they cover is skipped.
@Suite struct RestTests {
  private static let store = "com.example.Editor"

  /// Without skipping, there are 2,880 messages on each of 240 ways.
  @Test func `a day of sixteen idle devices is little work`() throws {
    let account = try TestAccount(devices: 16)
    try account[0].store(Self.store).set("dark", forKey: "theme")
    let before = account.network.delivered
    account.advance(by: .seconds(86_400))
    #expect(account.network.delivered - before < 20_000)
    try account[3].store(Self.store).set("light", forKey: "theme")
    #expect(try account[15].store(Self.store).value(forKey: "theme") == "light")
  }

  @Test func `a day is skipped also while messages take time`() throws {
    let account = try TestAccount(devices: 3)
    account.setFaults(delay: .milliseconds(200), duplication: 0.1)
    try account[0].store(Self.store).set("dark", forKey: "theme")
    account.advance(by: .seconds(86_400))
    #expect(try account[2].store(Self.store).value(forKey: "theme") == "dark")
    #expect(account.network.delivered < 2_000)
  }

  @Test(arguments: [60, 3_600, 86_400, 40 * 86_400])
  func `devices that were apart meet again as if all of them had slept`(seconds: Int) throws {
    let account = try TestAccount(devices: 4)
    let stores = try (0..<4).map { try account[$0].store(Self.store) }
    account.isolate(3)
    for round in 1...3 {
      try stores[0].set(.integer(Int64(round)), forKey: "n")
      try stores[3].set(.integer(Int64(round)), forKey: "m")
      account.advance(by: .seconds(seconds))
    }
    #expect(stores[3].value(forKey: "n") == nil)
    account.mendAll()
    #expect(stores.allSatisfy { $0.value(forKey: "n") == 3 && $0.value(forKey: "m") == 3 })
    account.advance(by: .seconds(seconds))
    try stores[3].set(4, forKey: "n")
    #expect(stores.allSatisfy { $0.value(forKey: "n") == 4 })
  }
}
