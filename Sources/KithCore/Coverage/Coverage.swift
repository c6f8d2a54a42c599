internal import KithCrypto

/// The coverage of every store by every device, as far as this device knows it, and the words that it
/// passes on (`Docs/Protocol.md`, "Statements"; `Docs/Decisions/overlay.md`).
///
/// It knows by two kinds of words: a peer tells its own vector on a session, and devices' signed
/// statements are passed on. One rule says which word counts: **a device is believed by the word of
/// its process that started last.** Words of one process add up, for its vector only rises. A word
/// of a later process replaces all earlier ones, for that process may have been started from an old
/// copy. A session shows which process runs: while it lasts, no other process of the device counts,
/// and afterwards only one that started later.
///
/// Peers compare digests of the statements that they hold. A device whose digest differs asks one
/// peer after the other for those that it lacks, so that each comes once.
struct Coverage {
  /// The known coverage of one store by one device.
  private struct Known {
    /// When the process started by whose word it is known.
    var started: HybridTime
    var vector: [ChainID: UInt64]
  }

  /// A session that exchanges stores.
  struct Peer {
    let device: DeviceID
    /// Whether it is a member: statements are for members only.
    let isMember: Bool
    /// When its process started; nil until a whole vector tells it.
    var started: HybridTime?
    /// The digests of the statements that it holds, as it told them last.
    var held: [StoreIdentifier: Digest128] = [:]
    /// The digests of the statements that this device holds, as the peer was told last.
    var told: [StoreIdentifier: Digest128] = [:]
    /// The digest for which the peer was asked last, and when.
    var asked: [StoreIdentifier: (digest: Digest128, at: UInt64)] = [:]
  }

  /// The last sign of a device since this process started.
  struct Meeting {
    /// When it was heard last, in milliseconds since 1970.
    var lastSeenMilliseconds: UInt64
    /// Its words in the last handshake; nil: none since.
    var hello: HeardOfDevice?
  }

  /// The coverage of a store by this device.
  struct Own {
    var vector: [ChainID: UInt64]
    /// Entries of the chains that published last.
    var latest: [ChainID: UInt64]
  }

  let device: DeviceID
  /// The members of the account, by the names that statements have for them.
  var members: [UInt64: [DeviceID]] = [:]
  var memberCount = 0
  private(set) var meetings: [DeviceID: Meeting] = [:]
  private var known: [DeviceID: [StoreIdentifier: Known]] = [:]
  /// When the process of each device started that a session showed last.
  private var shown: [DeviceID: HybridTime] = [:]
  var peers: [SessionID: Peer] = [:]
  var table = StatementTable()
  /// The own vectors when this device last looked, with their digests.
  var own: [StoreIdentifier: (vector: [ChainID: UInt64], digest: Digest256)] = [:]

  /// When this process started, as its statements say; nil before the first.
  var started: HybridTime?
  /// When it may speak anew, by the monotonic clock.
  var nextStartAt: UInt64 = 0
  /// How many statements this process made, by store.
  var numbers: [StoreIdentifier: UInt32] = [:]
  /// When this process last made a statement about a store, by the monotonic clock.
  var saidAt: [StoreIdentifier: UInt64] = [:]
  /// Stores about which this device is to make a statement.
  var unsaid: Set<StoreIdentifier> = []
  /// Stores whose statements are to be compared with the own vector.
  var unmatched: Set<StoreIdentifier> = []
  /// Stores of which other statements are held than peers were told.
  var untold: Set<StoreIdentifier> = []
  /// Questions that were not answered yet.
  var asks: [StoreIdentifier: (session: SessionID, at: UInt64)] = [:]
  /// When a store may be asked for again.
  var restUntil: [StoreIdentifier: UInt64] = [:]
  /// When something is said, told or asked next, by the monotonic clock.
  var tellAt: UInt64?
  var askAt: UInt64?

  /// When a store's vector last rose, by the monotonic clock.
  private var roseAt: [StoreIdentifier: UInt64] = [:]
  private var nextLookAt: UInt64 = 0
  private var leftBehind: [DeviceID] = []

  init(device: DeviceID) {
    self.device = device
  }

  // MARK: Members

  /// The members of the account are these. Statements of new ones are asked for again.
  mutating func setMembers(_ devices: [DeviceID]) {
    members = Dictionary(grouping: devices, by: \.shortName)
    memberCount = devices.count
    for id in peers.keys { peers[id]?.asked = [:] }
    if !peers.isEmpty { askAt = 0 }
  }

  func isMember(_ device: DeviceID) -> Bool {
    members[device.shortName]?.contains(device) == true
  }

  /// Forgets devices that are no members any more, with all that is known of their chains.
  mutating func forget(_ devices: Set<DeviceID>) {
    func others(_ vector: [ChainID: UInt64]) -> [ChainID: UInt64] {
      vector.filter { !devices.contains($0.key.device) }
    }
    for device in devices {
      (known[device], meetings[device], shown[device]) = (nil, nil, nil)
    }
    known = known.mapValues { stores in
      stores.mapValues { Known(started: $0.started, vector: others($0.vector)) }
    }
    table.keep { !devices.contains($0) }
  }

  // MARK: Meetings

  /// A device was heard.
  mutating func note(_ device: DeviceID, at milliseconds: UInt64) {
    meetings[device, default: Meeting(lastSeenMilliseconds: 0)].lastSeenMilliseconds = milliseconds
  }

  /// A device shook hands.
  mutating func note(_ device: DeviceID, _ hello: HeardOfDevice, at milliseconds: UInt64) {
    meetings[device] = Meeting(lastSeenMilliseconds: milliseconds, hello: hello)
  }

  // MARK: Sessions

  /// A session begins to exchange stores.
  mutating func begin(_ session: SessionID, with device: DeviceID, isMember: Bool) {
    peers[session] = Peer(device: device, isMember: isMember)
  }

  /// A session is over. A process of the device that started later counts from here on.
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

  /// The known coverage of a store by a device.
  func covered(by device: DeviceID, of store: StoreIdentifier) -> [ChainID: UInt64] {
    known[device]?[store]?.vector ?? [:]
  }

  /// Whether anything is known of a device's coverage of a store.
  func knows(_ device: DeviceID, of store: StoreIdentifier) -> Bool {
    known[device]?[store] != nil
  }

  /// Whether a device is known to cover a part of a store's vector.
  func covers(
    _ part: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> Bool {
    let vector = covered(by: device, of: store)
    return vector == part || part.allSatisfy { vector[$0.key] ?? 0 >= $0.value }
  }

  // MARK: Words of peers

  /// Takes in a vector that the peer of a session tells of itself, as far as its chains are known
  /// here. A whole vector replaces all that was known, for the peer may have been restored and cover
  /// less. It also tells which process speaks, for a statement of that process comes with it. Until
  /// then words of another process are passed over.
  ///
  /// - Parameters:
  ///   - vector: All entries that the peer told in the session.
  ///   - store: The store.
  ///   - isWhole: Whether the peer told all of it just now.
  ///   - session: The session.
  ///   - started: When the peer's process started; nil: as it said before.
  ///   - isKnown: Whether a chain is known here.
  mutating func hear(
    _ vector: [ChainID: UInt64], of store: StoreIdentifier, isWhole: Bool, on session: SessionID,
    started: HybridTime?, isKnown: (ChainID) -> Bool
  ) {
    guard let peer = peers[session] else { return }
    if isWhole {
      peers[session]?.started = started
      if peer.isMember { shown[peer.device] = started }
    }
    guard let process = peers[session]?.started, process == started ?? process else { return }
    let vector = vector.filter { isKnown($0.key) }
    if isWhole || known[peer.device]?[store]?.started != process {
      known[peer.device, default: [:]][store] = Known(started: process, vector: vector)
    } else {
      known[peer.device]?[store]?.vector.merge(vector, uniquingKeysWith: max)
    }
  }

  // MARK: Words that are passed on

  /// Believes a statement: all of the own vector if the device has the same, and its entries, each up
  /// to a signed header that came here.
  mutating func believe(
    _ statement: Statement, received: (StoreIdentifier, ChainID) -> UInt64
  ) {
    let (device, store, started) = (statement.device, statement.store, statement.age.started)
    if let peer = peers.values.first(where: { $0.device == device && $0.isMember }) {
      guard peer.started == started else { return }
    } else if let shown = shown[device] {
      guard started >= shown else { return }
    }
    var old = known[device]?[store]
    if old?.started != started { old = nil }
    var vector = old?.vector ?? [:]
    if let own = own[store], own.digest == statement.extent.digest {
      // Taken whole if it can be, so that all devices that cover the same share one.
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
    known[device, default: [:]][store] = Known(started: started, vector: vector)
  }

  // MARK: Left behind

  /// A store's vector has changed, mostly because it rose.
  mutating func rise(_ store: StoreIdentifier, at now: UInt64) {
    roseAt[store] = now
    unmatched.insert(store)
    unsaid.insert(store)
  }

  /// Looks now and then for the members left behind, which have no session here and for long are
  /// not known to cover data that does not change: the overlay may have come apart.
  ///
  /// - Returns: Them, by id, if they are others than before; nil otherwise.
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
