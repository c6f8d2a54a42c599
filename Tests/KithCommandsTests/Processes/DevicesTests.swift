import Foundation
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Devices of an account", .timeLimit(.minutes(5)))
struct DevicesTests {
  private struct Listing: Decodable {
    struct Device: Decodable {
      var id: String
      var name: String
      var fingerprint: String
      var isConnected: Bool
      var isMember: Bool
      var software: String?
      var enroller: String?
      var behind: [String: Int]
    }
    var devices: [Device]

    subscript(name: String) -> Device? { devices.first { $0.name == name } }
  }

  private func list(
    _ household: Household, _ member: Household.Member
  ) async throws -> Listing {
    let result = try await household.run(member, "devices", "--json")
    #expect(result.status == 0, "\(result)")
    return try JSONDecoder().decode(Listing.self, from: Data(result.output.utf8))
  }

  @Test func `each is listed with what is known of it, with and without a node`() async throws {
    let household = try Household()
    let (one, two) = (try await household.create("one"), try await household.join("two"))
    let idle = try await list(household, one)
    #expect(idle["one"]?.enroller == "creation")
    #expect(idle["two"]?.enroller == idle["one"]?.id && idle["two"]?.isConnected == false)
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    #expect(try await household.run(one, "set", "theme", "dark").status == 0)
    try await eventually("the other to have everything") {
      let known = try await list(household, one)["two"]
      return known?.isConnected == true && known?.behind.values.allSatisfy { $0 == 0 } == true
        && known?.behind.isEmpty == false && known?.software != nil
    }
    let text = try await household.run(one, "devices").output
    #expect(text.contains("connected") && text.contains("everything"), "\(text)")
    try await household.stop(two)
  }

  @Test func `an address is given to a running node, which remembers it once met`() async throws {
    let household = try Household()
    let (one, two) = (try await household.create("one"), try await household.join("two"))
    for member in household.members { try await household.start(member, peers: []) }
    #expect(try await two.client.status().peers.isEmpty)
    let met = try await household.run(two, "devices", "meet", one.address, "--json")
    #expect(met.status == 0 && met.output.contains(one.address), "\(met)")
    #expect(met.output.contains(#""device""#), "\(met)")
    try await household.awaitMeeting()
    let known = try await household.run(two, "devices", "addresses", "--json").output
    #expect(known.split(separator: "\"\(one.address)\"").count == 2, "\(known)")
    #expect(known.contains(#""device""#), "\(known)")
    for member in household.members { try await household.stop(member) }
    let idle = try await household.run(two, "devices", "meet", one.address)
    #expect(idle.status == CommandStatus.unreachable.rawValue, "\(idle)")
    for member in household.members { try await household.start(member, peers: []) }
    try await household.awaitMeeting()
    // What came of it is said, listed and taken back.
    for (place, reason) in [
      ("nohost.invalid", "no address is known for nohost.invalid"),
      ("127.0.0.1:1", "nothing listens at 127.0.0.1:1"), (two.address, "is this device itself"),
    ] {
      let vain = try await household.run(two, "devices", "meet", place)
      #expect(vain.status == CommandStatus.unreachable.rawValue, "\(vain)")
      #expect(vain.talk.contains(reason) && vain.talk.contains("kith devices forget"), "\(vain)")
    }
    let listed = try await household.run(two, "devices", "addresses").output
    #expect(listed.contains("no such host") && listed.contains(one.address), "\(listed)")
    let doctor = try await household.run(two, "doctor").output
    #expect(doctor.contains("called nohost.invalid:4114, as named"), "\(doctor)")
    try await eventually("the log to say so") {
      two.process?.saidSoFar.contains("an address leads to no device address=nohost.invalid")
        == true
    }
    for place in ["nohost.invalid", "127.0.0.1:1", one.address] {
      #expect(try await household.run(two, "devices", "forget", place).status == 0)
    }
    let rest = try await household.run(two, "devices", "addresses").output
    #expect(!rest.contains("nohost") && !rest.contains(one.address), "\(rest)")
    let unknown = try await household.run(two, "devices", "forget", "nohost.invalid")
    #expect(unknown.status == CommandStatus.notFound.rawValue)
    for wrong in ["", "host:0", "::1"] {
      let refused = try await household.run(two, "devices", "meet", wrong)
      #expect(refused.status == CommandStatus.usage.rawValue, "\(wrong): \(refused)")
    }
  }

  /// No node could start any more.
  @Test func `a node starts without the default store if there is no room for it`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try household.openStores(of: member, 256)
    try await household.start(member)
    #expect(member.process?.saidSoFar.contains("\"default\" is not made") == true)
    #expect(try await household.run(member, "set", "--store", "s0", "k", "1").status == 0)
    let doctor = try await household.run(member, "doctor").output
    #expect(doctor.contains("keeps at most 256"), "\(doctor)")
    try await household.stop(member)
  }

  @Test func `a new name shows everywhere, and odd references are refused`() async throws {
    let household = try Household()
    let (one, two) = (try await household.create("one"), try await household.join("two"))
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    let renamed = try await household.run(one, "devices", "rename", "two", "laptop")
    #expect(renamed.status == 0, "\(renamed)")
    for member in household.members {
      try await eventually("\(member.name) to show the new name") {
        try await list(household, member)["laptop"] != nil
      }
    }
    // Without a node, and by other references.
    let known = try #require(try await list(household, one)["laptop"])
    for member in household.members { try await household.stop(member) }
    for (reference, name) in [
      (known.fingerprint.lowercased(), "a"), (String(known.id.prefix(8)), "b"), ("b", "one"),
    ] {
      let result = try await household.run(two, "devices", "rename", reference, name)
      #expect(result.status == 0, "\(result)")
      #expect(try await list(household, two)[name] != nil)
    }
    for (reference, status) in [
      ("one", CommandStatus.refused), ("nobody", .notFound), ("", .usage),
      (String(known.id.prefix(3)), .notFound),
    ] {
      let result = try await household.run(two, "devices", "rename", reference, "x")
      #expect(result.status == status.rawValue, "\(reference): \(result)")
    }
  }

  @Test func `a device that is taken out is no member from then on`() async throws {
    let household = try Household()
    let (one, two) = (try await household.create("one"), try await household.join("two"))
    for member in household.members { try await household.start(member) }
    try await household.awaitMeeting()
    try await eventually("the log to name the device that came") {
      one.process?.saidSoFar.contains("a device connected address=") == true
        && one.process?.saidSoFar.contains("device=two") == true
    }
    let unsure = try await household.run(one, "devices", "revoke", "two")
    #expect(unsure.status == CommandStatus.refused.rawValue && unsure.talk.contains("--yes"))
    let own = try await household.run(one, "devices", "revoke", "one", "--yes")
    #expect(own.status == CommandStatus.refused.rawValue)
    let revoked = try await household.run(one, "devices", "revoke", "two", "--yes", "--json")
    #expect(revoked.status == 0, "\(revoked)")
    #expect(revoked.output.contains(#""name": "two""#))
    let known = try await list(household, one)
    #expect(known["two"]?.isMember == false)
    #expect(!(try await household.run(one, "devices").output.contains("two")))
    #expect(try await household.run(one, "devices", "list", "--all").output.contains("revoked"))
    let again = try await household.run(one, "devices", "revoke", "two", "--yes")
    #expect(again.status == CommandStatus.notFound.rawValue)
    try await eventually("the other to say so") {
      try await household.run(two, "status").output.contains("device was revoked")
    }
    #expect(try await list(household, one)["two"]?.isConnected == false)
    let out = try #require(two.process).saidSoFar
    #expect(out.contains("error kith: ") && out.contains("this device was revoked"), "\(out)")
    #expect(out.contains("by=one"), "\(out)")
    let by = try #require(one.process).saidSoFar
    #expect(by.contains("a device was revoked") && by.contains("device=two"), "\(by)")
    // Nothing waits in vain, or is made.
    let folder = household.root.appending(path: "folder").path
    for command in [
      ["set", "theme", "dark"], ["invite", "--yes"], ["sync"], ["devices", "meet", one.address],
      ["carrier", "add", "folder", folder, "--yes"],
    ] {
      let refused = try await KithProcess.run(
        command + ["--directory", two.directory.path], in: household.root)
      #expect(refused.status == CommandStatus.refused.rawValue, "\(command): \(refused)")
      #expect(refused.talk.contains("This device was revoked"), "\(command): \(refused)")
    }
    #expect(!FileManager.default.fileExists(atPath: folder))
    try await household.stop(two)
  }

  @Test func `a device stays when its enroller is revoked, unless the person says otherwise`()
    async throws
  {
    for (options, staysMember) in [
      ([], true), (["--keep-none"], false), (["--keep", "three"], true),
    ] {
      let household = try Household()
      let one = try await household.create("one")
      let two = try await household.join("two")
      let three = try await household.join("three", invitedBy: two)
      // Only nodes that meet learn of each other.
      for member in [one, two] { try await household.start(member) }
      try await eventually("the first to know all") {
        try await list(household, one)["three"] != nil
      }
      for member in [one, two] { try await household.stop(member) }
      let result = try await KithProcess.run(
        ["devices", "revoke", "two", "--yes", "--directory", one.directory.path] + options,
        in: household.root)
      #expect(result.status == 0, "\(result)")
      #expect(result.talk.contains(staysMember ? "these stay: three" : "With it go"), "\(result)")
      let known = try await list(household, one)
      #expect(known["two"]?.isMember == false)
      #expect(known["three"]?.isMember == staysMember, "\(options)")
      _ = three
    }
  }
}
