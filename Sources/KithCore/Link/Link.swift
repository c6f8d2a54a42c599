internal import KithCrypto

/// One peer's exchange, from its handshake until the session ends. A link knows no replica: its
/// methods take the values that they need, and return the actions to carry out.
struct Link {
  /// The peer's relation to this device, which decides the data that the session carries.
  enum State {
    /// The peer has not proved to be a member: it is sent little. Next: `membershipOnly` or
    /// `clocksDiffer`.
    case stranger(Stranger)
    /// A member, under an older epoch's key: the session carries records alone, to its end.
    case membershipOnly(DeviceID)
    /// A member whose clock is not known to agree with ours. Next: `exchanging`.
    case clocksDiffer(DeviceID)
    /// A member with which stores are exchanged.
    case exchanging(DeviceID)
    /// The inviter of this device, which is new and pulls everything.
    case inviter(DeviceID, Pull)
    /// A new device that pulls everything, and the records that will make it a member.
    case joiner(DeviceID, records: [Record])
  }

  let peer: SessionPeer
  let openedAt: UInt64
  private(set) var state: State
  /// Its clock less ours, in milliseconds, when it last told it.
  var clockOffsetMilliseconds: Int64
  /// The number of the last `Have` that asked.
  private var haveNumber: UInt64 = 0
  /// When the next full `Have` is due, by the monotonic clock; or, if the clocks differ, when this
  /// device tells its own again.
  private var dueAt: UInt64 = .max
  /// How often all records were sent again, because the peer could not judge something.
  private var recordsSentAgain = 0
  /// The exchange of each store.
  var stores: [StoreIdentifier: StoreExchange] = [:]
  var flow = Flow()
  var assembly = BatchAssembly()

  init(to peer: SessionPeer, at now: Instant) {
    self.init(.stranger(Stranger()), peer: peer, at: now)
    clockOffsetMilliseconds =
      Int64(clamping: peer.hello.clock.milliseconds) - Int64(clamping: now.wallMilliseconds)
  }

  /// A link that is in another state from its beginning: one of a join.
  init(_ state: State, peer: SessionPeer, at now: Instant) {
    self.peer = peer
    self.state = state
    openedAt = now.monotonicMilliseconds
    clockOffsetMilliseconds = 0
  }

  // MARK: The peer

  /// The member at the other end, once its certificate is known.
  var device: DeviceID? {
    switch state {
    case .stranger, .joiner: nil
    case .membershipOnly(let device), .clocksDiffer(let device), .exchanging(let device),
      .inviter(let device, _):
      device
    }
  }

  /// The new device at the other end, which joins over this session.
  var joiner: DeviceID? { if case .joiner(let device, _) = state { device } else { nil } }

  /// Whether stores are exchanged.
  var isExchanging: Bool {
    switch state {
    case .exchanging, .inviter, .joiner: true
    case .stranger, .membershipOnly, .clocksDiffer: false
    }
  }

  var isStranger: Bool { if case .stranger = state { true } else { false } }

  var isInviter: Bool { if case .inviter = state { true } else { false } }

  /// Whether the peer is told the time: it is a member that may exchange stores.
  var isToldTime: Bool {
    switch state {
    case .clocksDiffer, .exchanging, .inviter: true
    case .stranger, .membershipOnly, .joiner: false
    }
  }

  /// The peer proved to be a member. Returns whether it lacks records that only members are sent.
  mutating func recognise(_ device: DeviceID) -> Bool {
    guard case .stranger(let stranger) = state else { return false }
    state = peer.isMembershipOnly ? .membershipOnly(device) : .clocksDiffer(device)
    return stranger.isOwedRecords
  }

  /// The outcome of comparing the clocks.
  enum OnClock {
    /// Nothing changes.
    case goOn
    /// The exchange of stores begins.
    case begin
    /// Stores are not exchanged yet.
    case differ
    /// Stores are not exchanged any longer: the session ends.
    case end
  }

  /// Compares the clocks: in the handshake, and whenever the peer tells the time.
  mutating func judge(clocksAgree: Bool) -> OnClock {
    switch state {
    case .clocksDiffer(let device):
      guard clocksAgree else { return .differ }
      state = .exchanging(device)
      return .begin
    case .exchanging: return clocksAgree ? .goOn : .end
    case .stranger, .membershipOnly, .inviter, .joiner: return .goOn
    }
  }

  // MARK: Time

  /// The action that is due.
  enum OnTime {
    case nothing
    /// The session is a day old.
    case end
    /// The clocks differ: this device tells its own again.
    case tellTime
    /// A full `Have`.
    case ask
  }

  /// Returns the action that is due at a time of the monotonic clock. While a batch waits for its
  /// time, this device asks for nothing: the answer would hold that batch again.
  func due(at now: UInt64) -> OnTime {
    if now >= openedAt + Limits.sessionMilliseconds { return .end }
    guard now >= dueAt, retryAt == nil else { return .nothing }
    if case .clocksDiffer = state { return .tellTime }
    return .ask
  }

  /// When something is due next, by the monotonic clock.
  var wakeAt: UInt64 { min(retryAt ?? dueAt, openedAt + Limits.sessionMilliseconds) }

  /// The clocks differ: this device tells its own again after a while.
  mutating func toldTime(at now: UInt64) { dueAt = now + Limits.haveIntervalMilliseconds }

  // MARK: Asking

  /// Numbers a `Have` that asks. `nextAt`: when the next full one is due; nil: it is of some stores.
  mutating func ask(nextAt: UInt64?) -> UInt64 {
    haveNumber += 1
    if let nextAt { dueAt = nextAt }
    return haveNumber
  }

  /// Whether all records may be sent again, to a member that cannot judge something that we can.
  mutating func maySendRecordsAgain() -> Bool {
    recordsSentAgain += 1
    return recordsSentAgain <= Limits.recordsSentAgain
  }
}

// MARK: Strangers

extension Link {
  /// The data from a peer that has not proved to be a member.
  struct Stranger {
    fileprivate var bytesTaken = 0
    /// Certificates that may be part of the proof.
    fileprivate var proof: [CheckedRecord] = []
    /// Whether the peer lacks records that only a member is sent.
    fileprivate var isOwedRecords = false
  }

  /// The sender of records.
  enum OnRecords {
    case member
    /// A stranger, with the certificates that it brought before.
    case stranger(proof: [CheckedRecord])
    /// A stranger whose records reached the maximum size of a proof: no more are read.
    case tooMuch
  }

  mutating func receive(_ records: [CheckedRecord]) -> OnRecords {
    guard case .stranger(var stranger) = state else { return .member }
    guard stranger.bytesTaken < Limits.strangerBytes else { return .tooMuch }
    // Inside a message a record takes its field's number and length, too.
    stranger.bytesTaken += records.reduce(Limits.recordsMessageCost) {
      $0 + $1.record.encoded.count + 4
    }
    state = .stranger(stranger)
    return .stranger(proof: stranger.proof)
  }

  /// Certificates that prove nothing yet.
  mutating func keep(proof: [CheckedRecord]) {
    guard case .stranger(var stranger) = state else { return }
    stranger.proof = proof
    state = .stranger(stranger)
  }

  /// There are records that only members are sent. Returns whether the peer is one.
  mutating func mayBeSentRecords() -> Bool {
    guard case .stranger(var stranger) = state else { return true }
    stranger.isOwedRecords = true
    state = .stranger(stranger)
    return false
  }
}

// MARK: Joining

extension Link {
  /// The progress of a new device that pulls everything from its inviter.
  struct Pull {
    /// All stores that the inviter said it has, once it has listed all.
    fileprivate(set) var listed: Set<StoreIdentifier>?
    /// Whether all of them were pulled.
    fileprivate(set) var isDone = false
  }

  var pull: Pull? { if case .inviter(_, let pull) = state { pull } else { nil } }

  /// The inviter listed all its stores.
  mutating func list(_ stores: [StoreIdentifier]) {
    guard case .inviter(let device, var pull) = state else { return }
    pull.listed = Set(stores)
    state = .inviter(device, pull)
  }

  /// Returns true once, when every store that the inviter listed was pulled. Stores that this
  /// device does not keep, or keeps under other limits, do not count. If change sets could not be
  /// judged, this device asks for them again once it is a member.
  mutating func endPull(keeping stores: (StoreIdentifier) -> Bool) -> Bool {
    guard case .inviter(let device, var pull) = state, !pull.isDone, let listed = pull.listed,
      listed.allSatisfy({ !stores($0) || self[$0].isMismatched || self[$0].isPulled })
    else { return false }
    pull.isDone = true
    state = .inviter(device, pull)
    return true
  }

  /// How many stores were pulled.
  var pulledStores: Int { stores.values.count(where: \.isPulled) }
}
