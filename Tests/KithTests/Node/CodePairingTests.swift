import Foundation
import KithCore
import KithCrypto
import KithStorage
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// Joining by a short code, over real sockets.
@Suite(.timeLimit(.minutes(5)))
struct CodePairingTests {
  /// The events that an invitation has told, and the devices that asked.
  final class Told: Sendable {
    let opened = Mutex<OpenInvitation?>(nil)
    let triesLeft = Mutex<[Int]>([])
    let candidates = Mutex<[PairingDevice]>([])
    var invitation: OpenInvitation? { opened.withLock { $0 } }
  }

  /// Invites by a code for as long as the body runs.
  func inviting<Result: Sendable>(
    _ node: Node, announcedAt port: UInt16? = nil, accepts: Bool = true,
    _ body: @escaping @Sendable (Told, OpenInvitation) async throws -> Result
  ) async throws -> (Result, Swift.Result<PairingDevice, KithError>) {
    let told = Told()
    // Tests run at once, and must not meet each other's invitations at the usual port.
    let options = Node.InvitationOptions(
      hasCode: true, port: try freePort(), announcementPort: port)
    let invitation = Task<PairingDevice, any Error> {
      try await node.invite(options) { event in
        switch event {
        case .invitation(let open): told.opened.withLock { $0 = open }
        case .wrongCode(let left): told.triesLeft.withLock { $0.append(left) }
        case .candidate(let candidate):
          told.candidates.withLock { $0.append(candidate) }
          return accepts
        case .values, .change: break
        }
        return false
      }
    }
    try await eventually { told.invitation != nil }
    let result: Result
    do {
      result = try await body(told, #require(told.invitation))
    } catch {
      invitation.cancel()
      throw error
    }
    return (
      result, await invitation.result.mapError { $0 as? KithError ?? KithError(.cancelled, "") }
    )
  }

  @Test func aCodeIsFoundOnTheLinkAndLetsIn() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("second")
    try await running(first) {
      let port = try freePort()
      let (summary, invited) = try await inviting(first, announcedAt: port) { told, invitation in
        var options = Node.JoinOptions()
        options.announcementPort = port
        options.isLoopbackOnly = true
        let typed = try #require(invitation.code).replacing("-", with: " ")
        let met = Mutex<PairingDevice?>(nil)
        let summary = try await Node.join(
          directory: path, name: "second", code: typed, options: options
        ) { inviter, fingerprint in
          met.withLock { $0 = inviter }
          // Both persons see both fingerprints before either says yes.
          let isSame = await (try? eventually { !told.candidates.withLock { $0.isEmpty } }) != nil
          return isSame && told.candidates.withLock { $0.first?.fingerprint } == fingerprint
        }
        #expect(met.withLock { $0?.id } == first.device)
        #expect(met.withLock { $0?.name } == "first")
        return summary
      }
      #expect(try invited.get().id == summary.device)
      #expect(summary.account == first.account)
    }
    #expect(first.status.devices.map(\.name).sorted() == ["first", "second"])
    let second = try await Nodes.open(path)
    #expect(second.account == first.account)
    try second.close()
    try first.close()
  }

  /// The port that `run` shows is a node's; the invitation is at another one of the same host.
  @Test(arguments: [true, false])
  func theAddressOfTheNodeFindsTheInvitationToo(byToken: Bool) async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("second")
    try await running(first) {
      let (summary, invited) = try await inviting(first) { _, invitation in
        var options = Node.JoinOptions()
        options.pairingPort = try #require(
          invitation.addresses.first?.split(separator: ":").last.flatMap { UInt16($0) })
        return try await Node.join(
          directory: path, name: "second",
          code: byToken ? invitation.token : try #require(invitation.code),
          address: first.listeningAddresses.first, options: options
        ) { _, _ in true }
      }
      #expect(try invited.get().id == summary.device)
    }
    try first.close()
  }

  /// If there is no invitation, the message does not blame the code: it names each address that was
  /// tried.
  @Test func allAddressesThatWereTriedAreNamed() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    try await running(first) {
      let address = try #require(first.listeningAddresses.first)
      var options = Node.JoinOptions()
      options.pairingPort = try freePort()
      let error = await #expect(throws: KithError.self) {
        try await Node.join(
          directory: nodes.directory.child("second"), name: "second", code: "0000-0000",
          address: address, options: options
        ) { _, _ in true }
      }
      #expect(error?.code == .network)
      #expect(
        error?.message
          == "nobody at \(address) takes a code now, nothing listens at "
          + "127.0.0.1:\(options.pairingPort); check the address, and that `kith invite` is running; "
          + "a code or token admits one device."
      )
    }
    try first.close()
  }

  @Test func aWrongCodeIsToldToBothWithTheTriesThatAreLeft() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("second")
    try await running(first) {
      let (_, invited) = try await inviting(first) { told, invitation in
        let code = try #require(invitation.code)
        let address = try #require(invitation.addresses.first)
        // Never the right one: all digits of it differ, and the check digit fits.
        let wrong = try #require(
          ["1111-1117", "2222-2220", "0000-0000", "9999-9991"].first {
            (try? PairingCode(text: $0)) != nil && $0 != code
          })
        for left in [2, 1, 0] {
          let error = await #expect(throws: KithError.self) {
            _ = try await Node.join(
              directory: path, name: "second", code: wrong, address: address
            ) { _, _ in true }
          }
          #expect(error?.code == .pairingCode)
          #expect(error?.triesLeft == left)
        }
        try await eventually { told.triesLeft.withLock { $0 } == [2, 1, 0] }
        // The listener closes a little after the invitation has ended.
        try await eventually {
          let error = await #expect(throws: KithError.self) {
            _ = try await Node.join(
              directory: path, name: "second", code: code, address: address
            ) { _, _ in true }
          }
          return error?.code == .network
        }
      }
      let error = #expect(throws: KithError.self) { try invited.get() }
      #expect(error?.code == .pairingCode)
      #expect(error?.triesLeft == 0)
    }
    #expect(first.status.devices.map(\.name) == ["first"])
    await #expect(throws: KithError.self) { _ = try await Nodes.open(path) }
    try first.close()
  }

  @Test func aMistypedCodeIsToldBeforeAnythingIsSent() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("nobody")
    for code in ["1234-5678", "1234", "four words and more"] {
      let error = await #expect(throws: KithError.self) {
        // Port 1 answers nobody: had it been asked, the error would be another.
        _ = try await Node.join(
          directory: path, name: "nobody", code: code, address: "127.0.0.1:1"
        ) { _, _ in true }
      }
      #expect(error?.code == .pairingCode, "\(code)")
    }
    try nodes.first.close()
  }

  /// Nothing takes a member out again without a trace, so the joiner's person is heard first.
  @Test func whoeverDeclinesNobodyIsTakenIn() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("second")
    try await running(first) {
      for (inviterAccepts, joinerAccepts) in [(true, false), (false, true)] {
        let (_, invited) = try await inviting(first, accepts: inviterAccepts) { told, invitation in
          let (code, address) = (invitation.code ?? "", invitation.addresses.first)
          let error = await #expect(throws: KithError.self) {
            _ = try await Node.join(
              directory: path, name: "second", code: code, address: address
            ) { _, _ in joinerAccepts }
          }
          #expect(error?.code == .declined)
          try await eventually { !told.candidates.withLock { $0.isEmpty } }
        }
        #expect(throws: KithError.self) { try invited.get() }
        #expect(first.status.devices.map(\.name) == ["first"])
      }
    }
    try first.close()
  }

  /// It may have ended before it had kept the account: nobody would have that member's keys.
  @Test func aJoinerThatDoesNotSayThatItHasKeptTheAccountIsNoMember() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    try await running(first) {
      let (joiner, invited) = try await inviting(first) { _, invitation in
        var random = SystemRandom()
        let keys = DeviceSecrets(random: &random).makeKeys()
        let channel = try await Joining.Dialling(keys, name: "lost").connect(
          with: InvitationToken(text: invitation.token), address: nil)
        try channel.send(JoinConfirm().encoded())
        #expect(JoinReply(decoding: try await channel.receive())?.isAccepted == true)
        channel.close()
        return keys.id
      }
      let error = #expect(throws: KithError.self) { try invited.get() }
      #expect(error?.code == .network && error?.device == joiner)
      #expect(error?.message.contains("was not taken in") == true)
    }
    #expect(first.status.devices.map(\.name) == ["first"])
    try first.close()
  }

  @Test func aProgramInvitesByACodeThroughTheControlSocket() async throws {
    let served = try await Served()
    let joining = served.directory.child("joiner")
    try await served.run {
      let told = Told()
      async let invited = served.client.invite(hasCode: true) { invitation in
        told.opened.withLock { $0 = invitation }
      } onJoinRequest: { _ in
        true
      }
      try await eventually { told.invitation != nil }
      let invitation = try #require(told.invitation)
      let summary = try await Node.join(
        directory: joining, name: "joiner", code: try #require(invitation.code),
        address: invitation.addresses.first
      ) { _, _ in true }
      #expect(try await invited.id == summary.device)
    }
    try served.node.close()
  }

  /// Killing `kith invite` at its question told the joiner that the other device had declined.
  @Test func `a question that is cut off is no refusal`() async throws {
    let served = try await Served()
    let joiner = served.directory.child("joiner")
    try await served.run {
      let told = Told()
      let (asked, isAsked) = AsyncStream<Void>.makeStream()
      let inviting = Task {
        try await served.client.invite(hasCode: true) { invitation in
          told.opened.withLock { $0 = invitation }
        } onJoinRequest: { _ in
          isAsked.finish()
          // Longer than this test takes.
          try? await Task.sleep(for: .seconds(600))
          return false
        }
      }
      try await eventually { told.invitation != nil }
      let invitation = try #require(told.invitation)
      let joining = Task {
        try await Node.join(
          directory: joiner, name: "joiner", code: invitation.code ?? "",
          address: invitation.addresses.first
        ) { _, _ in true }
      }
      for await () in asked {}
      inviting.cancel()
      let joined = await joining.result
      let error = #expect(throws: KithError.self) { try joined.get() }
      #expect(error?.code == .network, "\(error.debugDescription)")
      _ = await inviting.result
    }
    try served.node.close()
  }

  /// It stayed, and its answer ended the invitation that a second try had got into by then.
  @Test(arguments: [false, true])
  func `a question ends with its candidate`(isOverSocket: Bool) async throws {
    let served = try await Served()
    let joiner = served.directory.child("joiner")
    try await served.run {
      let told = Told()
      let (asked, isAsked) = AsyncStream<Void>.makeStream()
      let inviter: any NodeAccess = isOverSocket ? served.client : served.node
      let inviting = Task {
        try await inviter.invite(hasCode: true) { invitation in
          told.opened.withLock { $0 = invitation }
        } onJoinRequest: { candidate in
          told.candidates.withLock { $0.append(candidate) }
          isAsked.finish()
          // Longer than this test takes.
          try? await Task.sleep(for: .seconds(600))
          return true
        }
      }
      try await eventually { told.invitation != nil }
      let invitation = try #require(told.invitation)
      let declined = await #expect(throws: KithError.self) {
        try await Node.join(
          directory: joiner, name: "joiner", code: invitation.code ?? "",
          address: invitation.addresses.first
        ) { _, _ in
          for await () in asked {}
          return false
        }
      }
      #expect(declined?.code == .declined)
      let invited = await inviting.result
      let error = #expect(throws: KithError.self) { try invited.get() }
      #expect(error?.code == .network, "\(error.debugDescription)")
      #expect(told.candidates.withLock { $0.count } == 1)
    }
    try served.node.close()
  }
}
