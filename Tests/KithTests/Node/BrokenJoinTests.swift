import KithCore
import KithCrypto
import KithNetwork
import KithStorage
import KithTestSupport
import NIOPosix
import Testing

@testable import Kith

/// A device that dies on its way into an account.
@Suite(.timeLimit(.minutes(5)))
struct BrokenJoinTests {
  /// Joins as far as the inviter's reply, and then stops.
  private static func join(
    _ first: Node, _ keys: DeviceKeys
  ) async throws -> Roster {
    let (tokens, continuation) = AsyncStream<String>.makeStream()
    let invited = Task {
      try await first.invite {
        continuation.yield($0.token)
        continuation.finish()
      } onJoinRequest: { _ in
        true
      }
    }
    var text = ""
    for await token in tokens { text = token }
    let token = try InvitationToken(text: text)
    let dialling = Joining.Dialling(keys, name: "second")
    let channel = try await dialling.dialler.connect(
      to: PeerAddress(host: "127.0.0.1", port: token.port),
      token: SharedPresharedKey(token.presharedKey()), answer: dialling.answer)
    let inviter = try #require(Invitation(decoding: channel.remotePayload))
    try channel.send(JoinConfirm().encoded())
    let reply = try #require(JoinReply(decoding: try await channel.receive()))
    let (roster, _) = try JoinRequest.check(reply, invitation: inviter, keys: keys)
    channel.close()
    await #expect(throws: KithError.self) { try await invited.value }
    return roster
  }

  /// The person who confirmed the join on the other device wanted it: the proof that the device has
  /// counts.
  @Test func `killed after it has kept the account it is a member once the two meet`() async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("second")
    let store = "com.example.test"
    try await running(first) {
      var entropy = SystemRandom()
      let secrets = DeviceSecrets(random: &entropy)
      let roster = try await Self.join(first, secrets.makeKeys())
      try Storage.create(
        Storage.reserve(path), secrets,
        roster.records.map { .put(.record($0.id), $0.encoded) }, nil)
      let second = try await Nodes.open(path, peers: first.listeningAddresses)
      try await running(second) {
        try await eventually { first.status.devices.map(\.name).sorted() == ["first", "second"] }
        try second.store(store).set("both", forKey: "key")
        try await eventually { try first.store(store).value(forKey: "key") == "both" }
      }
      try second.close()
    }
    try first.close()
  }

  @Test func `a member that was never heard of is told apart`() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    try await running(first) {
      let second = try await nodes.join("second", by: first)
      let reports = first.status.devices
      #expect(reports.first { $0.name == "second" }?.wasHeard == false)
      #expect(reports.first { $0.name == "first" }?.wasHeard == true)
      #expect(try await first.status().devices.count { !$0.wasHeard } == 1)
      try await running(second) {
        try await eventually { first.status.devices.allSatisfy(\.wasHeard) }
      }
      try second.close()
    }
    try first.close()
    // Also after a restart, when nobody is connected.
    let again = try await Nodes.open(nodes.directory.child("0"))
    #expect(again.status.devices.allSatisfy { $0.wasHeard })
    try again.close()
  }
}
