import KithCrypto
import KithNetwork
import KithStorage
import KithTestSupport
import NIOPosix
import Synchronization
import Testing

@testable import Kith
@testable import KithCore

/// A device that dies on its way into an account.
@Suite(.timeLimit(.minutes(5)))
struct BrokenJoinTests {
  /// Joins as far as the inviter's reply.
  private static func reachReply(
    _ first: Node, _ keys: DeviceKeys
  ) async throws -> (invited: Task<PairingDevice, any Error>, channel: PairingChannel, Roster) {
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
    return (invited, channel, roster)
  }

  /// Joins as far as the inviter's reply, and then stops.
  private static func join(
    _ first: Node, _ keys: DeviceKeys
  ) async throws -> Roster {
    let (invited, channel, roster) = try await reachReply(first, keys)
    channel.close()
    await #expect(throws: KithError.self) { try await invited.value }
    return roster
  }

  @Test func `an invitation that is cancelled while the device pulls says so`() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    try await running(first) {
      var entropy = SystemRandom()
      let keys = DeviceSecrets(random: &entropy).makeKeys()
      let (invited, channel, _) = try await Self.reachReply(first, keys)
      invited.cancel()
      let error = await #expect(throws: KithError.self) { try await invited.value }
      #expect(error?.code == .cancelled)
      channel.close()
    }
    try first.close()
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
      try DeviceStorage.create(
        DeviceStorage.reserve(path), secrets,
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
      #expect(reports.first { $0.name == "second" }?.wasSeen == false)
      #expect(reports.first { $0.name == "first" }?.wasSeen == true)
      #expect(try await first.status().devices.count { !$0.wasSeen } == 1)
      try await running(second) {
        try await eventually { first.status.devices.allSatisfy(\.wasSeen) }
      }
      try second.close()
    }
    try first.close()
    // Also after a restart, when nobody is connected.
    let again = try await Nodes.open(nodes.directory.child("0"))
    #expect(again.status.devices.allSatisfy { $0.wasSeen })
    try again.close()
  }
}

/// A joiner must have the keys that it asks to be certified.
@Suite(.timeLimit(.minutes(5)))
struct JoinerKeysTests {
  /// Keys with the signing key of one seed, and all others of the second seed.
  private static func keys(_ signing: UInt64, _ others: UInt64) -> DeviceKeys {
    var (one, two) = (SeededEntropy(seed: signing), SeededEntropy(seed: others))
    return DeviceKeys(
      signingSeed: SigningSeed(random: &one), boxSeed: BoxSeed(random: &two),
      transport: TransportPrivateKey(random: &two))
  }

  private final class Asked: Sendable {
    let names = Mutex<[String]>([])
  }

  /// Otherwise a joiner could have a key certified that another device holds. That device would
  /// then pass for the joiner, or a member's new key for the joiner's own. It gets no answer, whosever
  /// key it names.
  @Test(arguments: [false, true])
  func aTransportKeyThatTheHandshakeDidNotProveIsNotCertified(isMembers: Bool) async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let (used, claimed) = (Self.keys(7, 8), Self.keys(7, 9))
    let asked = Asked()
    try await running(first) {
      let (tokens, continuation) = AsyncStream<String>.makeStream()
      let invited = Task {
        try await first.invite(addresses: ["127.0.0.1"]) {
          continuation.yield($0.token)
          continuation.finish()
        } onJoinRequest: { candidate in
          asked.names.withLock { $0.append(candidate.name) }
          return false
        }
      }
      var text = ""
      for await token in tokens { text = token }
      let token = try InvitationToken(text: text)
      let dialler = PairingDialler(keys: used)
      let channel = try await dialler.connect(
        to: PeerAddress(host: "127.0.0.1", port: token.port),
        token: SharedPresharedKey(token.presharedKey())
      ) { payload, inviterKey in
        let inviter = try #require(Invitation(decoding: payload))
        let certificate = try #require(
          Certificate(
            device: used.id, boxKey: claimed.boxPublicKey,
            transportKey: isMembers ? inviterKey : claimed.transportPublicKey, name: "liar",
            issued: 1))
        let record = try Record(body: RecordBody.encode(certificate), signatures: [])
        return JoinRequestMessage(
          certificate: record.signed(by: used.signing, account: inviter.account)
        ).encoded()
      }
      // The inviter may be gone before it has taken this.
      try? channel.send(JoinConfirm().encoded())
      let error = await #expect(throws: KithError.self) { try await invited.value }
      #expect(error?.code == .notAMember)
      await #expect(throws: (any Error).self) { _ = try await channel.receive() }
      channel.close()
    }
    #expect(asked.names.withLock { $0 }.isEmpty)
    #expect(first.status.devices.map(\.name) == ["first"])
    try first.close()
  }

  /// A person was told `noEpoch` or `wrongAccount`.
  @Test func aRefusalIsToldInWords() {
    let errors: [JoinError] = [
      .notACertificate, .notSelfSigned, .keysInUse, .revoked, .invalidName, .mistakableName,
      .invalidKeys, .inviterCannotInvite, .declined, .wrongAccount, .inviterNotMember, .notMember,
      .noEpoch,
    ]
    for error in errors {
      let name = "\(error)"
      let isName = name.contains(where: \.isUppercase)
      #expect(!(isName && KithError(error).message.contains(name)), "\(name)")
    }
  }

  /// The inviter was blamed also if this device had ended the session.
  @Test func aJoinThatThisDeviceEndedDoesNotBlameTheInviter() throws {
    let inviter = Inviter(
      device: Self.keys(1, 1).id, clock: HybridTime(generation: 40, milliseconds: 5),
      address: "192.0.2.1:1")
    let ended = Joining.failure(.clocksDiffer, of: inviter)
    #expect(ended.code == .clocksDiffer && ended.message.contains("generation 40"))
    #expect(Joining.failure(.protocolViolation, of: inviter).code == .network)
    #expect(Joining.failure(nil, of: inviter).message.contains("ended the connection"))
  }

  /// It was said to have all of the account, also if stores came only in part.
  @Test func `a join that the inviter does not confirm says how much came`() {
    let inviter = Invitation(
      account: AccountID(Digest256 { $0[0] = 1 }), device: Self.keys(1, 1).id, name: "alpha")
    for (stores, data) in [
      (0, "all that alpha has"), (1, "what alpha has, of 1 store only a part"),
      (2, "what alpha has, of 2 stores only a part"),
    ] {
      let error = Joining.unconfirmed(by: inviter, partialStores: stores)
      #expect(error.code == .timedOut && error.device == inviter.device)
      #expect(error.message.contains(" This device has \(data), and counts once "))
    }
  }
}
