import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite struct DiscoveryTests {
    private static let value = "OcelotValueMarker"
    private static let key = "ZebraKeyMarker"

    /// Hosts of one LAN that were told nothing but, at their pairing, whose devices they are: they find
    /// each other, what one writes all show, and who listens in learns nothing of whose they are.
    @Test(.enabled(if: Bridge.isPossible, "network namespaces with a bridge cannot be made here"))
    func `three hosts of a LAN find each other without configuration`() async throws {
      let household = try Household()
      let bridge = try Bridge(household.root.lastPathComponent, count: 3)
      defer { bridge.remove() }
      let capture = try await Capture(namespace: bridge.hubPath)
      defer { capture.end() }
      try await begin(household, bridge)
      try await household.awaitMeeting()
      try await meet(household)
      try await write("first", household)

      // One host's interface goes, and another comes, whose link-local address nobody was told.
      let moved = household.members[1]
      let before = try await Self.heard(of: moved, by: household.members[0])
      try bridge.unplug(1)
      try await eventually("the lost interface to be noticed") {
        try await !Self.interfaces(moved).contains("lan")
      }
      try bridge.plug(1)
      try await eventually("the new interface to be used") {
        try await Self.interfaces(moved).contains("lan")
      }
      try await eventually("the new address to be found") {
        try await !Self.heard(of: moved, by: household.members[0]).isSubset(of: before)
      }
      try await write("second", household)
      try await eventually("more beacons", every: 50) {
        Set(capture.datagrams(to: 4114).map(\.payload)).count >= 9
      }
      try await judge(capture, household)
      try await replay(capture, bridge, household)
      for member in household.members { try await household.stop(member, SIGKILL) }
    }

    /// Two hosts of a LAN: a code that one shows and the other has typed is all that either is told. Then
    /// one gets another address while the two are connected, as by DHCP or on another network.
    @Test(.enabled(if: Bridge.isPossible, "network namespaces with a bridge cannot be made here"))
    func `a code typed on another host lets it in, and a new address is found`() async throws {
      let household = try Household()
      let bridge = try Bridge(household.root.lastPathComponent, count: 2)
      defer { bridge.remove() }
      let alpha = try await household.create("alpha")
      (alpha.launcher, alpha.host, alpha.discovers) = (bridge.launcher(0), "0.0.0.0", true)
      try await household.start(alpha, peers: [])
      let (invitation, code, _) = try await household.invite(alpha)
      let beta = try await household.join("beta", code: code, launcher: bridge.launcher(1))
      #expect(try await invitation.wait().status == 0)
      (beta.host, beta.discovers) = ("0.0.0.0", true)
      try await household.start(beta, peers: [])
      try await household.awaitMeeting()
      try await meet(household)

      // The session hangs, for neither end hears of it. By itself the kernel would end it after 45 s.
      try bridge.move(1, to: "10.78.0.99")
      let moved = ContinuousClock.now
      try await eventually("the moved host to be met at its new address", seconds: 30) {
        try await alpha.client.status().peers.contains {
          $0.isExchanging && $0.address.hasPrefix("10.78.0.99:")
        }
      }
      print("discovery: met at a new address after \(ContinuousClock.now - moved)")
      try await write("moved", household)
      for member in household.members { try await household.stop(member, SIGKILL) }
    }

    /// Nothing but loopback, as in many containers: the node serves, and says that nobody is heard there.
    @Test(.enabled(if: NamespaceSet.isPossible, "network namespaces cannot be made here"))
    func `a host without a network goes on`() async throws {
      let household = try Household()
      let namespaces = try Namespaces(household.root.lastPathComponent)
      defer { namespaces.remove() }
      for cable in ["cable01", "cable02"] {
        try Shell.run(namespaces.launcher(0) + ["ip", "link", "del", cable])
      }
      let alpha = try await household.create("alpha")
      try Shell.run(namespaces.launcher(0) + ["ip", "link", "set", "lo", "down"])
      (alpha.launcher, alpha.host, alpha.discovers) = (namespaces.launcher(0), "0.0.0.0", true)
      try await household.start(alpha, peers: [])
      #expect(try await alpha.client.status().discovery?.links == [])
      try Shell.run(namespaces.launcher(0) + ["ip", "link", "set", "lo", "up"])
      try await eventually("loopback to be used") {
        try await Self.interfaces(alpha) == ["lo"]
      }
      try await household.stop(alpha)
    }

    // MARK: Support

    private func begin(_ household: Household, _ bridge: Bridge) async throws {
      for (index, name) in ["alpha host", "beta host", "gamma host"].enumerated() {
        let member = try await (index == 0 ? household.create(name) : household.join(name))
        (member.launcher, member.host, member.discovers) = (
          bridge.launcher(index), "0.0.0.0", true
        )
      }
      for member in household.members { try await household.start(member, peers: []) }
    }

    private func meet(_ household: Household) async throws {
      for member in household.members {
        try await eventually("\(member.name) to meet all others") {
          let report = try await member.client.status()
          return Set(report.peers.filter(\.isExchanging).compactMap(\.device)).count
            == household.members.count - 1
        }
      }
    }

    /// Each writes; all show what all wrote.
    private func write(_ round: String, _ household: Household) async throws {
      for member in household.members {
        try await member.client.write(
          [("\(Self.key) \(round) \(member.name)", .string("\(Self.value) \(round)"))],
          in: Household.store)
      }
      try await household.settle()
      let shown = try await household.members[0].client.values(in: Household.store)
      #expect(shown.keys.count { $0.text.contains(round) } == household.members.count)
    }

    private static func interfaces(_ member: Household.Member) async throws -> Set<String> {
      let links = try await member.client.status().discovery?.links ?? []
      return Set(links.filter { $0.problem == nil }.map(\.interface))
    }

    /// The addresses from which another member heard a member.
    private static func heard(
      of member: Household.Member, by other: Household.Member
    ) async throws -> Set<String> {
      let id = try await member.client.status().device
      let neighbours = try await other.client.status().discovery?.neighbours ?? []
      return Set(neighbours.first { $0.device == id }?.addresses ?? [])
    }

    /// Checks the datagrams on the wire, as a listener there saw them.
    private func judge(_ capture: Capture, _ household: Household) async throws {
      let beacons = capture.datagrams(to: 4114)
      print("discovery: \(capture.frames.count) frames, \(beacons.count) beacons among them")
      #expect(beacons.contains { $0.isIPv6 } && beacons.contains { !$0.isIPv6 })
      #expect(beacons.allSatisfy { $0.hopLimit == 1 && $0.payload.count == 160 })
      // No two have anything in common: not a byte in all of them, nor eight in any two.
      let different = Set(beacons.map(\.payload))
      for place in 0..<160 { #expect(Set(different.map { $0[place] }).count > 1) }
      var windows: Set<ArraySlice<UInt8>> = []
      for beacon in different {
        for start in 0...(160 - 8) {
          #expect(windows.insert(beacon[start..<(start + 8)]).inserted)
        }
      }
      var secrets: [(name: String, bytes: [UInt8])] = [
        ("the store", Array(Household.store.utf8)), ("a key", Array(Self.key.utf8)),
        ("a value", Array(Self.value.utf8)),
      ]
      let report = try await household.members[0].client.status()
      for (name, id) in [("the account", report.account?.hex ?? "")]
        + report.devices.map({ ($0.name, $0.id.hex) })
      {
        secrets.append(("\(name)'s id", Self.bytes(id)))
        secrets.append(("\(name)'s id in digits", Array(id.utf8)))
        secrets.append(("\(name)'s name", Array(name.utf8)))
      }
      let all = Data(capture.frames.joined())
      for (name, bytes) in secrets {
        #expect(all.firstRange(of: bytes) == nil, "\(name) is on the wire")
      }
    }

    /// A beacon that another host on the link replays is heard, but does not make that host a
    /// device of the account. A beacon replayed from elsewhere is not heard at all.
    private func replay(
      _ capture: Capture, _ bridge: Bridge, _ household: Household
    ) async throws {
      let (victim, listener) = (household.members[0], household.members[1])
      let (near, far) = ("10.78.0.200", "10.99.0.200")
      for address in [near, far] { try bridge.join(as: address) }
      try await eventually("a replayed beacon to be heard", every: 200) {
        // Nobody can see whose beacon it is: the newest few are all told again.
        for beacon in Set(capture.datagrams(to: 4114).suffix(12).map(\.payload)) {
          for source in [far, near] {
            try await Capture.send(
              beacon, to: "239.255.75.104", port: 4114, from: source, namespace: bridge.hubPath)
          }
        }
        return try await Self.heard(of: victim, by: listener).contains { $0.hasPrefix(near) }
      }
      let heard = try await Self.heard(of: victim, by: listener)
      #expect(!heard.contains { $0.hasPrefix(far) })
      let peers = try await listener.client.status().peers
      #expect(!peers.contains { $0.address.hasPrefix(near) })
      try await write("third", household)
    }

    private static func bytes(_ hex: String) -> [UInt8] {
      let digits = hex.compactMap(\.hexDigitValue)
      return stride(from: 0, to: digits.count, by: 2).map {
        UInt8(digits[$0] << 4 | digits[$0 + 1])
      }
    }
  }
}
