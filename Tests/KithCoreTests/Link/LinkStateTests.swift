import KithCrypto
import Testing

@testable import KithCore

/// The state of a peer, and the messages that its link carries therefore.
@Suite struct LinkStateTests {
  static let id = deviceKeys(2).id
  static let states: [String: Link.State] = [
    "stranger": .stranger(Link.Stranger()), "membershipOnly": .membershipOnly(id),
    "clocksDiffer": .clocksDiffer(id), "exchanging": .exchanging(id),
    "inviter": .inviter(id, Link.Pull()), "joiner": .joiner(id, records: []),
  ]

  private func link(_ state: String, at milliseconds: UInt64 = 0) throws -> Link {
    Link(
      try #require(Self.states[state]), peer: LinkFixture.peer(),
      at: LinkFixture.instant(milliseconds))
  }

  private func name(_ state: Link.State) -> String {
    switch state {
    case .stranger: "stranger"
    case .membershipOnly: "membershipOnly"
    case .clocksDiffer: "clocksDiffer"
    case .exchanging: "exchanging"
    case .inviter: "inviter"
    case .joiner: "joiner"
    }
  }

  @Test(arguments: [
    ("stranger", false, false, false), ("membershipOnly", true, false, false),
    ("clocksDiffer", true, false, true), ("exchanging", true, true, true),
    ("inviter", true, true, true), ("joiner", false, true, false),
  ]) func `a state says who the peer is and what it gets`(
    state: String, isMember: Bool, isExchanging: Bool, getsClock: Bool
  ) throws {
    let link = try link(state)
    #expect(link.device == (isMember ? Self.id : nil))
    #expect(link.isExchanging == isExchanging)
    #expect(link.getsClock == getsClock)
    #expect(link.isStranger == (state == "stranger"))
    #expect(link.isInviter == (state == "inviter"))
    #expect(link.joiner == (state == "joiner" ? Self.id : nil))
  }

  @Test(arguments: [
    ("stranger", true, Link.OnClock.goOn, "stranger"),
    ("membershipOnly", true, .goOn, "membershipOnly"),
    ("clocksDiffer", true, .begin, "exchanging"),
    ("clocksDiffer", false, .differ, "clocksDiffer"),
    ("exchanging", true, .goOn, "exchanging"), ("exchanging", false, .end, "exchanging"),
    ("inviter", false, .goOn, "inviter"), ("joiner", false, .goOn, "joiner"),
  ]) func `clocks begin and end an exchange`(
    state: String, agree: Bool, outcome: Link.OnClock, next: String
  ) throws {
    var link = try link(state)
    let judged = link.judge(clocksAgree: agree)
    #expect(judged == outcome)
    #expect(name(link.state) == next)
  }

  @Test(arguments: [false, true]) func `a stranger is recognised once, and owed what it missed`(
    isMembershipOnly: Bool
  ) {
    let peer = LinkFixture.peer(isMembershipOnly: isMembershipOnly)
    var link = Link(to: peer, at: LinkFixture.instant())
    #expect(link.clockOffsetMilliseconds == 5)
    let mayBeSent = link.mayBeSentRecords()
    let isQueued = link.recognise(Self.id)
    #expect(!mayBeSent && isQueued)
    #expect(name(link.state) == (isMembershipOnly ? "membershipOnly" : "clocksDiffer"))
    let then = (link.mayBeSentRecords(), link.recognise(Self.id))
    #expect(then == (true, false))
  }

  @Test func `a stranger is listened to up to a bound, and a member without one`() throws {
    let fixture = try Fixture()
    let checked = fixture.records.map { CheckedRecord($0, account: fixture.account) }
    var link = Link(to: LinkFixture.peer(), at: LinkFixture.instant())
    link.setProof(checked)
    var times = 0
    while case .stranger(let proof) = link.receive(checked) {
      #expect(proof.map(\.record) == fixture.records)
      times += 1
    }
    let bytes = fixture.records.reduce(Limits.recordsMessageCost) { $0 + $1.encoded.count + 4 }
    #expect(times == (Limits.strangerBytes + bytes - 1) / bytes)
    guard case .tooMuch = link.receive([]) else { throw BrokenFixture() }
    _ = link.recognise(Self.id)
    guard case .member = link.receive(checked) else { throw BrokenFixture() }
  }

  @Test func `time brings a have, the time, or the end`() throws {
    var link = LinkFixture.exchanging()
    #expect(link.due(at: 1_000) == .nothing)
    let first = link.ask(nextAt: nil)
    #expect(link.due(at: 1_000) == .nothing)
    let second = link.ask(nextAt: 500)
    #expect((first, second) == (1, 2))
    #expect(link.wakeAt == 500)
    #expect(link.due(at: 499) == .nothing && link.due(at: 500) == .ask)
    #expect(link.due(at: Limits.sessionMilliseconds) == .end)
    var differing = try self.link("clocksDiffer")
    differing.noteClockSent(at: 100)
    #expect(differing.due(at: 30_099) == .nothing && differing.due(at: 30_100) == .sendClock)
  }

  @Test func `all records are sent again three times at most`() {
    var link = LinkFixture.exchanging()
    let may = (0..<5).map { _ in link.maySendRecordsAgain() }
    #expect(may == [true, true, true, false, false])
  }

  @Test func `a pull ends once, with all stores that this device keeps`() throws {
    let (one, other) = (LinkFixture.store, LinkFixture.other)
    var link = try link("inviter")
    func ends(_ link: inout Link, _ keeps: (StoreIdentifier) -> Bool = { _ in true }) -> Bool {
      link.endPull(keeping: keeps)
    }
    var ended = [ends(&link)]
    link.list([one, other])
    ended.append(ends(&link))
    var taint = Taint()
    taint.isUnjudged = true
    link[one].noteApplied(Batch(store: one, answers: 1), taint, isNews: false)
    #expect(link.pulledStores == 1)
    ended.append(ends(&link))
    #expect(ended == [false, false, false])
    var mismatched = link
    mismatched[other].isMismatched = true
    ended = [ends(&mismatched), ends(&link) { $0 == one }, ends(&link) { $0 == one }]
    #expect(ended == [true, true, false])
    #expect(link.pull?.isDone == true)
    var exchanging = LinkFixture.exchanging()
    exchanging.list([])
    ended = [ends(&exchanging)]
    #expect(ended == [false])
  }

  /// Of two connections between the same devices, by who dialled them and the processes.
  @Test(arguments: [
    (true, false, true, 1, true), (false, true, true, 1, false), (true, false, false, 1, false),
    (false, true, false, 1, true), (true, true, false, 1, true), (false, true, true, 2, true),
  ]) func `one of two connections stays`(
    isDialled: Bool, wasDialled: Bool, weAreSmaller: Bool, process: UInt8, stays: Bool
  ) {
    let old = LinkFixture.peer(isDialled: wasDialled)
    let new = LinkFixture.peer(process: process, isDialled: isDialled)
    #expect(new.isPreferred(to: old, dialledBySmaller: weAreSmaller) == stays)
  }
}
