import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite struct CrowdTests {
    /// How much more resident memory a node may take than before, in a debug build.
    static let growthLimit = 16 << 20

    /// The behaviour of a hostile connection: it sends nothing, garbage, one byte at a time
    /// (slow-loris), or bytes with the form of a first message.
    private enum Manner: Int, CaseIterable {
      case silence, garbage, slowLoris, firstMessage
    }

    /// A thousand hostile connections at once, made anew as they are closed, for some seconds: memory
    /// stays bounded, no byte comes back, members write to each other meanwhile, and one that comes
    /// anew gets in.
    @Test func `under a thousand hostile connections memory is bounded and members are served`()
      async throws
    {
      let seed = testSeed("hostile connections")
      let seconds = Faults.number("KITH_HOSTILE_SECONDS", or: 8)
      RawConnection.raiseLimits()
      let household = try Household()
      let alpha = try await household.create("alpha")
      let beta = try await household.join("beta")
      for member in household.members { try await household.start(member) }
      try await household.awaitMeeting()
      let victim = try #require(alpha.process?.id)
      let before = try #require(ResidentMemory(of: victim)).resident
      var random = SeededGenerator(seed: seed)
      var connections: [(manner: Manner, connection: RawConnection)] = []
      var made = 0
      var most = before
      var answered = 0
      var writes = 0
      var slowest = Duration.zero
      func connect() throws -> (Manner, RawConnection) {
        let manner = Manner.allCases[made % Manner.allCases.count]
        made += 1
        return (manner, try RawConnection(port: alpha.port, sending: words(manner, &random)))
      }
      let end = ContinuousClock.now + .seconds(seconds)
      while ContinuousClock.now < end {
        while connections.count < 1_000 { connections.append(try connect()) }
        for index in connections.indices {
          let (manner, connection) = connections[index]
          if manner == .slowLoris { connection.send([UInt8.random(in: 0...255, using: &random)]) }
          connection.look()
          if !connection.received.isEmpty { answered += 1 }
        }
        connections.removeAll { $0.connection.isClosed }
        most = max(most, ResidentMemory(of: victim)?.resident ?? 0)
        if writes == 4 {
          // A member that comes anew gets in. (Foundation starts no process beyond 1,024 files.)
          connections = Array(connections.prefix(800))
          try await household.stop(beta)
          try await household.start(beta)
        }
        let value = PropertyListValue.integer(Int64(writes))
        let began = ContinuousClock.now
        try await beta.client.write([("crowd", value)], in: Household.store)
        try await eventually("a write among hostile connections", seconds: 20) {
          try await alpha.client.value(forKey: "crowd", in: Household.store) == value
        }
        slowest = max(slowest, ContinuousClock.now - began)
        writes += 1
      }
      connections = []
      print(
        "hostile connections: \(made) made, 1,000 at a time; VmRSS \(before >> 10) KiB before, "
          + "\(most >> 10) KiB at most; \(writes) writes between members, the slowest took \(slowest)"
      )
      #expect(answered == 0 && made > 2_000 && writes > 4)
      #expect(most - before < Self.growthLimit)
      #expect(alpha.process?.isRunning == true)
    }

    private func words(_ manner: Manner, _ random: inout SeededGenerator) -> [UInt8] {
      func noise(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      }
      return switch manner {
      case .silence: []
      case .garbage: noise(900)
      case .slowLoris: [0]
      // An ephemeral key, a payload of two bytes, a tag.
      case .firstMessage: [0, 50] + noise(50)
      }
    }
  }
}
