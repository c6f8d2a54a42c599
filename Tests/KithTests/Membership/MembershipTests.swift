import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import Kith

/// Devices are listed, renamed and revoked by people, over real connections.
@Suite(.timeLimit(.minutes(5)))
struct MembershipTests {
  @Test func aRevokedDeviceLearnsItAndTheOthersGoOn() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let third = try await running(first) { try await nodes.join("third", by: first) }
    try await running(first, second, third) {
      let one = try first.store("com.example.test")
      let two = try second.store("com.example.test")
      let three = try third.store("com.example.test")
      try await second.meetsPeer()
      try await third.meetsPeer()
      try await three.commit { $0.set("theirs", forKey: "kept") }
      try await eventually {
        one.value(forKey: "kept") == "theirs" && two.value(forKey: "kept") != nil
      }
      try await first.rename(third.device, to: "lost phone")
      try await eventually {
        second.status.devices.first { $0.id == third.device }?.name == "lost phone"
      }
      try await first.revoke(third.device, keeping: [])
      try await eventually { third.status.isRevoked }
      try await eventually {
        second.status.devices.first { $0.id == third.device }?.isMember == false
      }
      // Its sessions end, it reads on, and writes nothing.
      try await eventually { third.status.peers.isEmpty }
      #expect(three.value(forKey: "kept") == "theirs")
      #expect(third.status.problems.contains { $0.code == .revoked })
      let refused = await #expect(throws: KithError.self) {
        try await three.commit { $0.set("after", forKey: "kept") }
      }
      #expect(refused?.code == .revoked)
      // It invites nobody and meets nobody, and does not blame a limit of sessions.
      let address = try #require(first.listeningAddresses.first)
      for call in [
        NodeCall.invite(addresses: [], hasCode: true), .meet(address: address),
        .keepCarrier(CarrierSettings(kind: "folder", location: "/nowhere")),
      ] {
        let refused = await #expect(throws: KithError.self) { try await third.perform(call) }
        #expect(refused?.code == .revoked, "\(call)")
      }
      try await eventually {
        third.status.addresses.contains {
          $0.outcome == .failed && $0.reason == "this device was revoked, and calls no other"
        }
      }
      // The others go on under the new epoch.
      try await two.commit { $0.set("secret", forKey: "new") }
      try await eventually { one.value(forKey: "new") == "secret" }
      #expect(two.value(forKey: "kept") == "theirs")
      #expect(three.value(forKey: "new") == nil)
      let listed = try #require(first.status.devices.first { $0.id == third.device })
      #expect(listed.revocation?.revokers == [first.device])
      let peer = try #require(first.status.devices.first { $0.id == second.device })
      #expect(peer.isConnected && peer.isMember && peer.software?.isEmpty == false)
      #expect(peer.enroller == .device(first.device))
    }
    for node in [first, second, third] { try node.close() }
  }

  @Test func whatPeopleAskForIsDurableWithoutRunning() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    try await first.rename(first.device, to: "desk")
    try await first.revoke(second.device, keeping: [])
    for (device, code) in [
      (first.device, KithError.Code.invalidDevice), (second.device, .invalidDevice),
    ] {
      let refused = await #expect(throws: KithError.self) {
        try await first.revoke(device, keeping: [])
      }
      #expect(refused?.code == code)
    }
    let refused = await #expect(throws: KithError.self) {
      try await first.rename(first.device, to: "a\nb")
    }
    #expect(refused?.code == .invalidName)
    try first.close()
    let again = try await Nodes.open(nodes.directory.child("0"))
    #expect(again.status.devices.first(where: \.isThisDevice)?.name == "desk")
    #expect(again.status.devices.first { $0.id == second.device }?.revocation != nil)
    try again.close()
    try second.close()
  }
}

/// A member may have filled the stores that it is to be thrown out of.
@Suite(.timeLimit(.minutes(5)))
struct RevokingWithoutStoresTests {
  @Test func `a device is revoked without a look at what it wrote, which is carried over later`()
    async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    try await running(first, second) {
      let one = try first.store("com.example.test")
      let two = try second.store("com.example.test")
      try await second.meetsPeer()
      try await two.commit { $0.set("theirs", forKey: "kept") }
      try await eventually { one.value(forKey: "kept") == "theirs" }
    }
    let directory = first.configuration.directory
    try first.close()
    var configuration = Node.Configuration(directory: directory)
    configuration.readsMembershipOnly = true
    let alone = try await Node.open(configuration)
    #expect(alone.status.stores.isEmpty, "nothing is in memory")
    #expect(alone.status.devices.contains { $0.id == second.device && $0.isMember })
    try await alone.revoke(second.device, keeping: [])
    try alone.close()
    let again = try await Nodes.open(directory)
    #expect(again.status.devices.contains { $0.id == second.device && !$0.isMember })
    #expect(try await again.value(forKey: "kept", in: "com.example.test") == "theirs")
    #expect(!again.status.stores.contains { $0.missing != nil })
    // The duty of every member: what it wrote lives on under this device's name.
    let published = again.status.stores.first?.digest
    try await running(again) {
      try await eventually {
        again.engine.read { replica in
          replica.storeIdentifiers.allSatisfy { store in
            replica.covered(of: store).keys.contains { $0.device == again.device }
          }
        }
      }
    }
    #expect(again.status.stores.first?.digest == published)
    try again.close()
    try second.close()
    let last = try await Nodes.open(directory)
    #expect(try await last.value(forKey: "kept", in: "com.example.test") == "theirs")
    try last.close()
  }
}
