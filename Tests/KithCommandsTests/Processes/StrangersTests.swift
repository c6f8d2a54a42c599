import Foundation
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Strangers", .serialized, .timeLimit(.minutes(5)))
struct StrangersTests {
  /// The first bytes that strangers send.
  private static let firstWords: [(name: String, bytes: [UInt8])] = {
    var random = SeededGenerator(seed: 7)
    func noise(_ count: Int) -> [UInt8] {
      (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    // A frame as long as a first message of XXpsk0 with an empty payload, and one with a hello.
    let hello = [UInt8](arrayLiteral: 0, 48) + noise(48)
    let longer = [UInt8](arrayLiteral: 0, 112) + noise(112)
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
    let greeting: [UInt8] =
      [0x16, 0x03, 0x01, 0x00, 0xC8, 0x01, 0x00, 0x00, 0xC4, 0x03, 0x03] + noise(196)
    return [
      ("nothing", []), ("a byte", [0]), ("random bytes", noise(512)), ("too much", noise(20_000)),
      ("a TLS hello", greeting), ("an HTTP request", Array(request.utf8)),
      ("a Noise message", hello), ("a longer Noise message", longer),
    ]
  }()

  @Test func `a stranger gets no byte back, and its connection ends after 5 seconds`() async throws
  {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let began = ContinuousClock.now
    let connections = try Self.firstWords.map {
      try RawConnection(port: member.port, sending: $0.bytes)
    }
    var closedAfter: [Double?] = connections.map { _ in nil }
    try await eventually("all to be closed") {
      for (index, connection) in connections.enumerated() where closedAfter[index] == nil {
        connection.look()
        if connection.isClosed { closedAfter[index] = (ContinuousClock.now - began) / .seconds(1) }
      }
      return closedAfter.allSatisfy { $0 != nil }
    }
    for (index, words) in Self.firstWords.enumerated() {
      #expect(connections[index].received.isEmpty, "\(words.name) drew an answer")
      let after = closedAfter[index] ?? 0
      // A loaded machine closes later, but never sooner: the time of closing tells nothing of the
      // bytes that it read.
      #expect(after > 4.5, "\(words.name) was closed after \(after) s")
    }
    #expect(member.process?.isRunning == true)
  }

  @Test func `under a thousand strangers members go on`() async throws {
    RawConnection.raiseLimits()
    let household = try Household()
    let alpha = try await household.create("alpha")
    let beta = try await household.join("beta")
    try await household.start(alpha)
    try await household.start(beta)
    try await eventually("the two to meet") { try await !beta.client.status().peers.isEmpty }
    var random = SeededGenerator(seed: 11)
    var strangers: [RawConnection] = []
    for number in 0..<1_000 {
      let words = Self.firstWords[number % Self.firstWords.count].bytes
      strangers.append(try RawConnection(port: alpha.port, sending: words))
      guard number.isMultiple(of: 50) else { continue }
      let value = PropertyListValue.integer(Int64.random(in: 0 ... .max, using: &random))
      try await beta.client.write([("crowd", value)], in: "default")
      try await eventually("a write under \(number) strangers", seconds: 5) {
        try await alpha.client.value(forKey: "crowd", in: "default") == value
      }
    }
    // A member that comes anew gets in as well.
    try await household.stop(beta)
    try await household.start(beta)
    try await alpha.client.write([("after", true)], in: "default")
    try await eventually("a member to come back among strangers", seconds: 15) {
      try await beta.client.value(forKey: "after", in: "default") == true
    }
    for stranger in strangers { stranger.look() }
    let answered = strangers.count { !$0.received.isEmpty }
    #expect(answered == 0)
  }
}
