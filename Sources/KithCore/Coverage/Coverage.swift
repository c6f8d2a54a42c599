internal import KithCrypto

/// The coverage of every store by every device, as far as this device knows it
/// (`Docs/Protocol/statements.md`; `Docs/Decisions/overlay.md`).
///
/// Peers tell their own vectors in sessions, and pass on devices' signed statements. **A device is
/// believed by the word of its process that started last.**
/// - Words of one process add up, since its vector only rises.
/// - A later process replaces all earlier words, since it may run on an old copy.
/// - During a session only the process at its other end counts. Afterwards another one counts if it
///   started later.
///
/// Peers compare digests of held statements. If they differ, a device asks one peer after the other
/// for those that it lacks, so each comes once.
///
/// Numbers named `…At` and `…Until` are monotonic milliseconds.
struct Coverage {
  private struct Known {
    /// When the process started that told it.
    var started: HybridTime
    var vector: [ChainID: UInt64]
    /// Whether it may hold values that were removed: then it does not have what it covers.
    var isBelow: Bool
    /// Its last statement when a session told that: earlier ones do not count for it.
    var saidBefore: UInt32 = 0
  }

  /// A session that exchanges stores.
  struct Peer {
    let device: DeviceID
    /// Only members get statements.
    let isMember: Bool
    /// When its process started; nil before it tells a whole vector.
    var started: HybridTime?
    /// Digests of the statements that it holds, as last told.
    var held: [StoreIdentifier: Digest128] = [:]
    /// Digests of the statements held here, as last told to it, and ``StatementTable/changes``.
    var told: [StoreIdentifier: (digest: Digest128, at: UInt64)] = [:]
    /// ``StatementTable/changes`` when both last told the same digest: both still hold those
    /// statements or later ones.
    var agreed: [StoreIdentifier: UInt64] = [:]
    /// Its digest when it was last asked, and the time.
    var asked: [StoreIdentifier: (digest: Digest128, at: UInt64)] = [:]
  }

  /// A process that was heard, and when, by the monotonic clock.
  struct HeardProcess {
    var started: HybridTime
    var at: UInt64

    /// Whether a process with an earlier start replaces it: its own is `isRefuted`, too far ahead of
    /// a time that is certain, and by that time the other started after this one was heard.
    func isReplaced(
      by start: HybridTime, at now: Instant, isRefuted: (HybridTime) -> Bool
    ) -> Bool {
      let heard =
        Int64(clamping: now.wallMilliseconds)
        - Int64(clamping: now.monotonicMilliseconds - min(at, now.monotonicMilliseconds))
      return start < started
        && Int64(clamping: start.milliseconds) >= heard - Limits.clockDifferenceMilliseconds
        && isRefuted(started)
    }
  }

  struct Own {
    var vector: [ChainID: UInt64]
    /// Entries of the chains that published last.
    var latest: [ChainID: UInt64]
    /// Whether this device is below the store's horizon.
    var isBelow = false
  }

  let device: DeviceID
  /// Members by their short names, which statements use.
  var members: [UInt64: [DeviceID]] = [:]
  var memberCount = 0
  private var known: [DeviceID: [StoreIdentifier: Known]] = [:]
  /// The last processes that sessions showed, by device.
  private var shown: [DeviceID: HeardProcess] = [:]
  var peers: [SessionID: Peer] = [:]
  var table = StatementTable()
  /// Own vectors when last compared.
  var own: [StoreIdentifier: (vector: [ChainID: UInt64], digest: Digest256)] = [:]

  /// This process's start in its statements; nil before the first.
  var started: HybridTime?
  /// When this process may start anew.
  var nextStartAt: UInt64 = 0
  /// Statements that this process made, by store.
  var numbers: [StoreIdentifier: UInt32] = [:]
  /// When this process last made a statement.
  var saidAt: [StoreIdentifier: UInt64] = [:]
  /// Stores that need an own statement.
  var unsaid: Set<StoreIdentifier> = []
  /// Stores whose statements need comparison with the own vector.
  var unmatched: Set<StoreIdentifier> = []
  /// Stores whose held statements changed since peers were told.
  var untold: Set<StoreIdentifier> = []
  /// Unanswered questions.
  var asks: [StoreIdentifier: (session: SessionID, at: UInt64)] = [:]
  /// When a store may be asked for again.
  var restUntil: [StoreIdentifier: UInt64] = [:]
  /// The next times to tell and to ask.
  var tellAt: UInt64?
  var askAt: UInt64?

  /// When a vector last changed.
  /// The data that a member lacked when it was last up to date with all earlier data.
  private struct Lag {
    /// By the wall clock.
    var sinceMilliseconds: UInt64
    var vectors: [StoreIdentifier: [ChainID: UInt64]]
  }

  /// For the status alone.
  private var lags: [DeviceID: Lag] = [:]
  private var roseAt: [StoreIdentifier: UInt64] = [:]
  private var nextLookAt: UInt64 = 0
  private var leftBehind: [DeviceID] = []

  init(device: DeviceID) {
    self.device = device
  }

  // MARK: Members

  /// Sets the members, and asks peers again, for new members' statements.
  mutating func setMembers(_ devices: [DeviceID]) {
    members = Dictionary(grouping: devices, by: \.shortName)
    memberCount = devices.count
    for id in peers.keys {
      peers[id]?.asked = [:]
      peers[id]?.agreed = [:]
    }
    if !peers.isEmpty { askAt = 0 }
  }

  func isMember(_ device: DeviceID) -> Bool {
    members[device.shortName]?.contains(device) == true
  }

  /// Forgets former members, with all that is known of their chains.
  mutating func forget(_ devices: Set<DeviceID>) {
    func others(_ vector: [ChainID: UInt64]) -> [ChainID: UInt64] {
      vector.filter { !devices.contains($0.key.device) }
    }
    for device in devices {
      (known[device], shown[device]) = (nil, nil)
      lags[device] = nil
    }
    known = known.mapValues { stores in
      stores.mapValues {
        Known(
          started: $0.started, vector: others($0.vector), isBelow: $0.isBelow,
          saidBefore: $0.saidBefore)
      }
    }
    table.keep { !devices.contains($0) }
  }

  // MARK: Sessions

  mutating func begin(_ session: SessionID, with device: DeviceID, isMember: Bool) {
    peers[session] = Peer(device: device, isMember: isMember)
  }

  /// Ends a session. From now on, a later process of its device counts.
  mutating func end(_ session: SessionID) {
    guard let peer = peers.removeValue(forKey: session) else { return }
    asks = asks.filter { $0.value.session != session }
    guard peer.isMember else {
      known[peer.device] = nil
      return
    }
    for store in table.stores
    where table[store, peer.device].map({ $0.age.started > peer.started ?? .zero }) == true {
      unmatched.insert(store)
    }
  }

  // MARK: Known coverage

  func covered(by device: DeviceID, of store: StoreIdentifier) -> [ChainID: UInt64] {
    known[device]?[store]?.vector ?? [:]
  }

  /// Whether all other members are known to cover a change set.
  func coveredByAllOthers(of store: StoreIdentifier) -> (ChangeSetReference) -> Bool {
    let vectors = members.values.joined().filter { $0 != device }.map { covered(by: $0, of: store) }
    return { changeSet in
      vectors.allSatisfy { $0[changeSet.chain] ?? 0 >= changeSet.sequence }
    }
  }

  /// The other members not known to cover a change set.
  func lacking(of store: StoreIdentifier) -> (ChangeSetReference) -> [DeviceID] {
    let vectors = members.values.joined().filter { $0 != device }
      .map { (device: $0, vector: covered(by: $0, of: store)) }
    return { changeSet in
      vectors.filter { $0.vector[changeSet.chain] ?? 0 < changeSet.sequence }.map(\.device)
    }
  }

  /// Whether each other member is known to be below the horizon, so that none can say what was
  /// removed.
  func areOthersBelow(in store: StoreIdentifier) -> Bool {
    members.values.joined().allSatisfy {
      $0 == device || known[$0]?[store]?.isBelow == true
    }
  }

  /// How many of these change sets the device is not known to cover; nil if nothing was heard of it. At
  /// least one while it is below the horizon.
  func lacking(
    _ vector: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> UInt64? {
    guard let known = known[device]?[store] else { return nil }
    let count = vector.reduce(0) { $0 + $1.value - min($1.value, known.vector[$1.key] ?? 0) }
    return known.isBelow ? max(1, count) : count
  }

  /// Since when a device lacks something of these vectors that it still lacks, as far as this was
  /// asked; nil: it covers them. A device that always lacks the newest writes is not late.
  mutating func lag(
    of device: DeviceID, behind vectors: [StoreIdentifier: [ChainID: UInt64]],
    at milliseconds: UInt64
  ) -> UInt64? {
    func covers(_ vectors: [StoreIdentifier: [ChainID: UInt64]]) -> Bool {
      vectors.allSatisfy { self.covers($0.value, of: $0.key, device) }
    }
    if covers(vectors) {
      lags[device] = nil
    } else if lags[device].map({ covers($0.vectors) }) ?? true {
      lags[device] = Lag(sinceMilliseconds: milliseconds, vectors: vectors)
    }
    return lags[device]?.sinceMilliseconds
  }

  /// Whether a device has all of a vector.
  func covers(
    _ part: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> Bool {
    guard known[device]?[store]?.isBelow != true else { return false }
    let vector = covered(by: device, of: store)
    return vector == part || part.allSatisfy { vector[$0.key] ?? 0 >= $0.value }
  }

  // MARK: Words of peers

  /// Takes in a peer's own vector from its session, as far as the chains are known here.
  ///
  /// `vector` holds all that the peer told in the session. If `isWhole`, it replaces all that was
  /// known, since the peer may have been restored and cover less. It also shows which process
  /// speaks; words of another are ignored. A nil `started` means the same process.
  mutating func hear(
    _ vector: [ChainID: UInt64], of store: StoreIdentifier, isWhole: Bool, isBelow: Bool = false,
    on session: SessionID, started: HybridTime?, at now: UInt64, isKnown: (ChainID) -> Bool
  ) {
    guard let peer = peers[session] else { return }
    if isWhole {
      peers[session]?.started = started
      if peer.isMember { shown[peer.device] = started.map { HeardProcess(started: $0, at: now) } }
    }
    guard let process = peers[session]?.started, process == started ?? process else { return }
    let vector = vector.filter { isKnown($0.key) }
    let age = table[store, peer.device]?.age
    let said = age?.started == process ? age?.number ?? 0 : 0
    if isWhole || known[peer.device]?[store]?.started != process {
      known[peer.device, default: [:]][store] = Known(
        started: process, vector: vector, isBelow: isBelow, saidBefore: said)
    } else {
      known[peer.device]?[store]?.vector.merge(vector, uniquingKeysWith: max)
      known[peer.device]?[store]?.isBelow = isBelow
      known[peer.device]?[store]?.saidBefore = said
    }
  }

  /// Counts a process for a device from now on, if it replaces the one that a session showed.
  mutating func replaceShown(
    of device: DeviceID, by start: HybridTime, _ isReplaced: (HeardProcess, HybridTime) -> Bool
  ) {
    if let process = shown[device], isReplaced(process, start) { shown[device]?.started = start }
  }

  // MARK: Words that are passed on

  /// Believes a statement: the own vector if digests are equal, and entries up to received signed
  /// headers.
  mutating func believe(
    _ statement: Statement, received: (StoreIdentifier, ChainID) -> UInt64
  ) {
    let (device, store, started) = (statement.device, statement.store, statement.age.started)
    if let peer = peers.values.first(where: { $0.device == device && $0.isMember }) {
      guard peer.started == started else { return }
    } else if let shown = shown[device] {
      guard started >= shown.started else { return }
    }
    var old = known[device]?[store]
    if old?.started != started { old = nil }
    var vector = old?.vector ?? [:]
    if let own = own[store], own.digest == statement.extent.digest {
      // Assigned whole if possible, so that equal vectors share memory.
      if vector.allSatisfy({ $0.value <= own.vector[$0.key] ?? 0 }) {
        vector = own.vector
      } else {
        vector.merge(own.vector, uniquingKeysWith: max)
      }
    }
    for (chain, sequence) in statement.extent.entries {
      let believed = min(sequence, received(store, chain))
      if believed > vector[chain] ?? 0 { vector[chain] = believed }
    }
    let isNews = statement.age.number > old?.saidBefore ?? 0
    known[device, default: [:]][store] = Known(
      started: started, vector: vector,
      isBelow: isNews ? statement.extent.isBelow : old?.isBelow == true,
      saidBefore: max(old?.saidBefore ?? 0, statement.age.number))
  }

  // MARK: Left behind

  /// A store's vector has changed.
  mutating func rise(_ store: StoreIdentifier, at now: UInt64) {
    roseAt[store] = now
    unmatched.insert(store)
    unsaid.insert(store)
  }

  /// Looks at intervals for members left behind: the overlay may have come apart.
  ///
  /// - Returns: The members, by id, if they are others than before; otherwise nil.
  mutating func lookForLeftBehind(
    at now: UInt64, connected: Set<DeviceID>, vectors: () -> [StoreIdentifier: [ChainID: UInt64]]
  ) -> [DeviceID]? {
    guard now >= nextLookAt else { return nil }
    nextLookAt = now + Limits.haveIntervalMilliseconds
    let settled = vectors().filter {
      now >= (roseAt[$0.key] ?? 0) + Limits.leftBehindMilliseconds
    }
    let behind = members.values.joined().filter { device in
      device != self.device && !connected.contains(device)
        && !settled.allSatisfy { covers($0.value, of: $0.key, device) }
    }.sorted()
    guard behind != leftBehind else { return nil }
    leftBehind = behind
    return behind
  }
}

extension Coverage.Own {
  init(_ store: StoreReplica) {
    let vector = store.log.vector
    self.init(
      vector: vector, latest: store.log.latest(Limits.statementEntries, of: vector),
      isBelow: store.horizon.isBelow)
  }
}
