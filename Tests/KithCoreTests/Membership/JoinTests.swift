import KithCrypto
import Testing

@testable import KithCore

struct JoinTests {
  var fixture: Fixture
  let joiner = deviceKeys(2)
  var roster: Roster
  var keyring = Keyring()
  let invitation: Invitation

  init() throws {
    fixture = try Fixture()
    roster = fixture.roster(fixture.records)
    keyring.refresh(from: roster, keys: fixture.creator)
    invitation = Invitation(
      account: fixture.account, device: fixture.creator.id, name: "first")
  }

  func request() throws -> Record {
    try JoinRequest.make(account: fixture.account, keys: joiner, name: "laptop", issued: 5)
  }

  mutating func reply() throws -> JoinReply {
    let new = try JoinRequest.accept(
      request(), roster: roster, keyring: keyring, keys: fixture.creator,
      entropy: &fixture.entropy)
    return JoinReply(
      isAccepted: true, records: roster.records + new,
      addresses: [fixture.creator.id: ["192.0.2.1:4114"]],
      clock: HybridTime(milliseconds: 12))
  }

  @Test mutating func theWholeWayThroughBytes() throws {
    let seen = try #require(Invitation(decoding: invitation.encoded()))
    #expect(seen == invitation)
    let asked = try #require(
      JoinRequestMessage(decoding: JoinRequestMessage(certificate: request()).encoded()))
    #expect(try JoinRequest.verify(asked.certificate, roster: roster).name == "laptop")
    let sent = try reply()
    let got = try #require(JoinReply(decoding: sent.encoded()))
    #expect(got == sent)
    let (theirs, theirKeyring) = try JoinRequest.check(got, invitation: seen, keys: joiner)
    #expect(theirs.sortedMembers.count == 2)
    #expect(theirKeyring.current?.id == keyring.current?.id)
    let done = InboundMessage(decoding: JoinDone().encodedMessage(), account: invitation.account)
    #expect(done.map { if case .done = $0.body { true } else { false } } == true)
    _ = roster.learn(all: got.records)
    #expect(roster.digest == theirs.digest)
  }

  /// The account has more records than a reply holds, among them 30 epochs with all their recipients,
  /// made by its first device or by one that did not take in the inviter.
  @Test(arguments: [1, 9] as [UInt64])
  mutating func `a joiner gets what it needs of a large account`(maker: UInt64) throws {
    for seed in 3...60 as ClosedRange<UInt64> {
      _ = try roster.learn(all: [fixture.certificate(of: deviceKeys(seed), by: fixture.creator)])
    }
    for _ in 0..<30 {
      let epoch = try #require(
        keyring.nextEpoch(for: roster, keys: deviceKeys(maker), entropy: &fixture.entropy))
      _ = roster.learn(all: epoch)
      keyring.refresh(from: roster, keys: fixture.creator)
    }
    let inviter = deviceKeys(7)
    keyring = Keyring()
    keyring.refresh(from: roster, keys: inviter)
    let added = try JoinRequest.accept(
      request(), roster: roster, keyring: keyring, keys: inviter, entropy: &fixture.entropy)
    _ = roster.learn(all: added)
    let sent = roster.recordsForJoiner(joiner.id)
    #expect(sent.map(\.encoded.count).reduce(0, +) <= MembershipLimits.strangerBytes)
    #expect(roster.chain(of: deviceKeys(99).id).isEmpty)
    let reply = JoinReply(isAccepted: true, records: sent, addresses: [:], clock: .zero)
    let (theirs, theirKeyring) = try JoinRequest.check(
      reply,
      invitation: Invitation(account: fixture.account, device: inviter.id, name: "seventh"),
      keys: joiner)
    #expect(theirs.isMember(joiner.id) && theirs.isMember(inviter.id))
    #expect(theirKeyring.current?.id == keyring.current?.id)
  }

  @Test mutating func tamperedRequestsAreRefused() throws {
    let request = try request()
    #expect(throws: JoinError.notSelfSigned) {
      try JoinRequest.verify(request.with(signatures: []), roster: roster)
    }
    var body = request.body
    body[body.count - 1] ^= 1
    let changed = try Record(body: body, signatures: request.signatures)
    #expect(throws: JoinError.notSelfSigned) { try JoinRequest.verify(changed, roster: roster) }
    #expect(throws: JoinError.notACertificate) {
      try JoinRequest.verify(fixture.records[1], roster: roster)
    }
    #expect(throws: JoinError.invalidName) {
      try JoinRequest.make(account: fixture.account, keys: joiner, name: "a\nb", issued: 1)
    }
  }

  @Test mutating func aNameThatLooksLikeAMembersIsRefused() throws {
    let member = try #require(roster.name(of: fixture.creator.id))
    var both = roster
    _ = both.learn(all: try reply().records)
    func request(_ name: String) throws -> Record {
      try JoinRequest.make(account: fixture.account, keys: joiner, name: name, issued: 5)
    }
    // The same name is a person's choice.
    #expect(try JoinRequest.verify(request(member), roster: roster).name == member)
    for name in [member + " ", member + "\u{FE0F}", " " + member] {
      #expect(throws: JoinError.mistakableName, "\(name)") {
        try JoinRequest.verify(request(name), roster: roster)
      }
      #expect(throws: MembershipError.mistakableName) {
        try both.renaming(joiner.id, to: name, at: 9, keys: fixture.creator)
      }
    }
    _ = try both.renaming(joiner.id, to: member, at: 9, keys: fixture.creator)
    // No device looks like itself.
    _ = try both.renaming(fixture.creator.id, to: member + " ", at: 9, keys: fixture.creator)
    #expect(NameLikeness.areMistakable("Ivan's PC", "Іvаn's РС"))
    #expect(NameLikeness.areMistakable("ＬＡＰＴＯＰ  1", "LAPTOP 1"))
    #expect(NameLikeness.areMistakable("é", "e\u{301}"))
    for (one, other) in [("laptop", "laptop"), ("laptop", "Laptop"), ("мак", "mak"), ("a b", "ab")]
    {
      #expect(!NameLikeness.areMistakable(one, other), "\(one), \(other)")
    }
  }

  @Test func aNameHoldsNothingThatIsNotSeen() throws {
    for scalar in [
      "\u{200B}", "\u{200C}", "\u{200D}", "\u{200E}", "\u{200F}", "\u{2060}", "\u{FEFF}",
      "\u{61C}", "\u{E0000}", "\u{E0041}", "\u{E007F}", "\u{AD}",
    ] {
      #expect(!Certificate.isValidName("lap\(scalar)top"), "\(scalar.unicodeScalars)")
    }
    for name in ["Björns Rechner", "日本", "ноутбук", "❤\u{FE0F}", "🧭", "مكتب"] {
      #expect(Certificate.isValidName(name))
    }
  }

  /// Two people read them in a question.
  @Test func `a name that a terminal obeys, or a long one, comes in no pairing message`() throws {
    let usual = Array("lap___top".utf8)
    func certificate(named name: String) throws -> Record {
      var body = try JoinRequest.make(
        account: fixture.account, keys: joiner, name: "lap___top", issued: 5
      ).body
      let start = try #require(body.indices.first { body[$0...].starts(with: usual) })
      body.replaceSubrange(start..<start + usual.count, with: name.utf8)
      return try Record(body: body, signatures: [])
    }
    func invitation(named name: String) -> Invitation? {
      let sent = Invitation(
        account: fixture.account, device: fixture.creator.id, name: name)
      return Invitation(decoding: sent.encoded())
    }
    #expect(try certificate(named: "lap-_-top").body.count > 0)
    #expect(invitation(named: String(repeating: "x", count: 64)) != nil)
    // As long as the usual one, so that the certificate's lengths stay right.
    for name in ["lap\u{1B}[mtop", "lap\n\r\ttop", "lap\u{202E}top", "lap\u{2066}top"] {
      #expect(name.utf8.count == usual.count)
      #expect(throws: RecordError.invalidName) { try certificate(named: name) }
      #expect(invitation(named: name) == nil)
    }
    for name in ["", String(repeating: "x", count: 65), String(repeating: "x", count: 10_000)] {
      #expect(invitation(named: name) == nil)
    }
  }

  @Test mutating func tamperedRepliesAreRefused() throws {
    let reply = try reply()
    func check(_ change: (inout JoinReply) -> Void) -> JoinError? {
      var changed = reply
      change(&changed)
      do throws(JoinError) {
        _ = try JoinRequest.check(changed, invitation: invitation, keys: joiner)
        return nil
      } catch {
        return error
      }
    }
    let genesis = fixture.account.digest
    #expect(check { _ in } == nil)
    #expect(check { $0.isAccepted = false } == .declined)
    #expect(check { $0.records.removeAll { $0.id == genesis } } == .wrongAccount)
    #expect(check { $0.records.removeAll { $0.signers.contains(joiner.id) } } == .notMember)
    #expect(
      check {
        $0.records.removeAll { if case .lockbox = $0.kind { true } else { false } }
      } == .noEpoch)
    let other = Invitation(account: fixture.account, device: deviceKeys(8).id, name: "x")
    #expect(throws: JoinError.inviterNotMember) {
      try JoinRequest.check(reply, invitation: other, keys: joiner)
    }
  }

  @Test mutating func recoveryWhenNoDeviceIsLeft() throws {
    let new = deviceKeys(3)
    #expect(throws: MembershipError.wrongRecoveryKey) {
      try Account.recover(
        recovery: recoveryKey(4), records: fixture.records, keys: new, name: "new", issued: 9,
        entropy: &fixture.entropy)
    }
    let records = try Account.recover(
      recovery: fixture.recovery, records: fixture.records, keys: new, name: "new", issued: 9,
      entropy: &fixture.entropy)
    _ = roster.learn(all: records)
    #expect(roster.isMember(new.id))
    #expect(roster.enroller(of: new.id) == roster.genesis?.recoverySigningKey)
    var theirs = Keyring()
    theirs.refresh(from: roster, keys: new)
    #expect(theirs.current?.id == keyring.current?.id)
  }
}
