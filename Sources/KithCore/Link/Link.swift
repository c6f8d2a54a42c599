internal import KithCrypto

/// One session's exchange. A link knows no replica: its methods take the values that they need, and
/// return actions.
struct Link {
  /// The peer's relation to this device; it decides what the session carries.
  enum State {
    /// Not proved to be a member: it gets little. Next: `membershipOnly` or `clocksDiffer`.
    case stranger(Stranger)
    /// A member under an older epoch's key: the session carries only records.
    case membershipOnly(DeviceID)
    /// A member whose clock may not agree with ours. Next: `exchanging`.
    case clocksDiffer(DeviceID)
    case exchanging(DeviceID)
    /// The inviter, from which this new device pulls everything.
    case inviter(DeviceID, Pull)
    /// A new device that pulls everything; the records will make it a member.
    case joiner(DeviceID, records: [Record])
  }

  let peer: SessionPeer
  let openedAt: UInt64
  private(set) var state: State
  /// The peer's clock minus ours, as last received.
  var clockOffsetMilliseconds: Int64
  /// The number of the last `Have` that asked.
  private var haveNumber: UInt64 = 0
  /// When the next full `Have` is due, by the monotonic clock; if the clocks differ, when to send
  /// the clock again.
  private var dueAt: UInt64 = .max
  /// How often all records were sent again because the peer could not validate something.
  private var recordsSentAgain = 0
  var stores: [StoreIdentifier: StoreExchange] = [:]
  var flow = Flow()
  var assembly = BatchAssembly()

  init(to peer: SessionPeer, at now: Instant) {
    self.init(.stranger(Stranger()), peer: peer, at: now)
    clockOffsetMilliseconds =
      Int64(clamping: peer.hello.clock.milliseconds) - Int64(clamping: now.wallMilliseconds)
  }

  /// For a join, which starts in another state.
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

  var joiner: DeviceID? { if case .joiner(let device, _) = state { device } else { nil } }

  var isExchanging: Bool {
    switch state {
    case .exchanging, .inviter, .joiner: true
    case .stranger, .membershipOnly, .clocksDiffer: false
    }
  }

  var isStranger: Bool { if case .stranger = state { true } else { false } }

  var isInviter: Bool { if case .inviter = state { true } else { false } }

  /// Whether the peer is sent this device's clock: a member that may exchange stores.
  var getsClock: Bool {
    switch state {
    case .clocksDiffer, .exchanging, .inviter: true
    case .stranger, .membershipOnly, .joiner: false
    }
  }

  /// The peer proved to be a member. Returns whether it lacks records for members.
  mutating func recognise(_ device: DeviceID) -> Bool {
    guard case .stranger(let stranger) = state else { return false }
    state = peer.isMembershipOnly ? .membershipOnly(device) : .clocksDiffer(device)
    return stranger.lacksRecords
  }

  enum OnClock {
    case goOn
    case begin
    /// Stores are not exchanged yet.
    case differ
    /// The clocks no longer agree: the session ends.
    case end
  }

  /// Called after the handshake, and whenever the peer sends its clock.
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

  enum OnTime {
    case nothing
    /// The session is a day old.
    case end
    /// The clocks differ: send the clock again.
    case sendClock
    /// Send a full `Have`.
    case ask
  }

  func due(at now: UInt64) -> OnTime {
    if now >= openedAt + Limits.sessionMilliseconds { return .end }
    guard now >= dueAt else { return .nothing }
    if case .clocksDiffer = state { return .sendClock }
    return .ask
  }

  /// When something is due next, by the monotonic clock.
  var wakeAt: UInt64 { min(dueAt, openedAt + Limits.sessionMilliseconds) }

  /// The clock was sent; schedules sending it again.
  mutating func noteClockSent(at now: UInt64) { dueAt = now + Limits.haveIntervalMilliseconds }

  // MARK: Asking

  /// Numbers a `Have` that asks. `nextAt`: the next full one; nil: this one is partial.
  mutating func ask(nextAt: UInt64?) -> UInt64 {
    haveNumber += 1
    if let nextAt { dueAt = nextAt }
    return haveNumber
  }

  /// Counts that all records are sent again, because a member cannot validate something; false over
  /// the limit.
  mutating func maySendRecordsAgain() -> Bool {
    recordsSentAgain += 1
    return recordsSentAgain <= Limits.recordsSentAgain
  }
}

// MARK: Batches

extension Link {
  /// Adds a part of a batch. `bounds` limit it; nil: the store is unknown.
  mutating func receive(
    _ part: BatchPart, size: Int, within bounds: BatchBounds?
  ) -> BatchAssembly.OnPart {
    assembly.add(part, size: size, within: self[part.store].isMismatched ? nil : bounds)
  }

  /// Bytes of batches not yet applied.
  var bufferedBytes: Int { assembly.weights.total }
}

// MARK: Strangers

extension Link {
  struct Stranger {
    fileprivate var bytesReceived = 0
    /// Certificates that may be part of the proof.
    fileprivate var proof: [CheckedRecord] = []
    /// Whether it lacks records for members.
    fileprivate var lacksRecords = false
  }

  enum OnRecords {
    case member
    /// The certificates are those that it brought before.
    case stranger(proof: [CheckedRecord])
    /// Its records reached the limit: no more are read.
    case tooMuch
  }

  mutating func receive(_ records: [CheckedRecord]) -> OnRecords {
    guard case .stranger(var stranger) = state else { return .member }
    guard stranger.bytesReceived < Limits.strangerBytes else { return .tooMuch }
    // A record in a message also takes its field's number and length.
    stranger.bytesReceived += records.reduce(Limits.recordsMessageCost) {
      $0 + $1.record.encoded.count + 4
    }
    state = .stranger(stranger)
    return .stranger(proof: stranger.proof)
  }

  mutating func setProof(_ proof: [CheckedRecord]) {
    guard case .stranger(var stranger) = state else { return }
    stranger.proof = proof
    state = .stranger(stranger)
  }

  /// There are records for members. Returns whether the peer is one.
  mutating func mayBeSentRecords() -> Bool {
    guard case .stranger(var stranger) = state else { return true }
    stranger.lacksRecords = true
    state = .stranger(stranger)
    return false
  }
}

// MARK: Joining

extension Link {
  /// A new device's progress in pulling everything from its inviter.
  struct Pull {
    /// All stores of the inviter, once it has listed them.
    fileprivate(set) var listed: Set<StoreIdentifier>?
    fileprivate(set) var isDone = false
  }

  var pull: Pull? { if case .inviter(_, let pull) = state { pull } else { nil } }

  mutating func list(_ stores: [StoreIdentifier]) {
    guard case .inviter(let device, var pull) = state else { return }
    pull.listed = Set(stores)
    state = .inviter(device, pull)
  }

  /// Returns true once, when every listed store that is kept under the same policy is pulled.
  /// Change sets that could not be judged are requested again after joining.
  mutating func endPull(keeping stores: (StoreIdentifier) -> Bool) -> Bool {
    guard case .inviter(let device, var pull) = state, !pull.isDone, let listed = pull.listed,
      listed.allSatisfy({ !stores($0) || self[$0].isMismatched || self[$0].isPulled })
    else { return false }
    pull.isDone = true
    state = .inviter(device, pull)
    return true
  }

  var pulledStores: Int { stores.values.count(where: \.isPulled) }
}

extension SessionPeer {
  /// Whether this connection replaces an older one between the same devices
  /// (`Docs/Protocol/sessions.md`, "Two sessions with one device"). The one that the smaller id
  /// dialled stays. But the newer one also stays if the peer's process is new (the older is dead),
  /// or if one side dialled both (the older broke).
  func isPreferred(to old: SessionPeer, dialledBySmaller weAreSmaller: Bool) -> Bool {
    guard old.hello.process == hello.process, old.isDialled != isDialled else { return true }
    return isDialled == weAreSmaller
  }
}
