internal import KithCrypto

/// Which device covers which change sets, as far as this device knows it. Nothing of it is stored.
///
/// A peer sends its own vectors in its session. For all others, each device makes a signed **word**
/// of what it covers of all its stores, and devices pass words on (`Docs/Protocol/words.md`;
/// `Docs/Decisions/overlay.md`).
/// - Of each device the latest word is kept.
/// - The vectors of a running process only rise, so all that it sent is merged. A word or a session
///   of another process replaces it: that process may run on an old copy.
/// - While the latest word is of another process than the one at a session's other end, only the
///   coverage that both state counts.
///
/// Numbers named `…At` are monotonic milliseconds.
struct Coverage {
  /// How much a device covers of a store.
  struct Extent {
    var vector: [ChainID: UInt64] = [:]
    /// Whether it may hold values that were removed: then it does not have what it covers.
    var isBelow = false
  }

  /// The coverage that one process of a device sent.
  struct Known {
    var process: UInt64
    var stores: [StoreIdentifier: Extent] = [:]
  }

  /// A session that exchanges stores.
  struct Peer {
    let device: DeviceID
    let process: UInt64
    /// Only members get words.
    let isMember: Bool
    /// The coverage that it sent of itself; none before its first whole vector.
    var extents: [StoreIdentifier: Extent] = [:]
    /// Devices whose kept words the peer neither sent nor was sent.
    var unsentWords: Set<DeviceID>
    /// When the session last carried words, in either direction.
    var movedAt: UInt64 = 0
    /// Whether it was sent this device's own word.
    var isIntroduced = false
  }

  /// A store of this device.
  struct Own {
    let extent: Extent
    let digest: Digest128
    /// The vector's entries of the chains that published last.
    let latest: [ChangeSetLog.Published]
  }

  /// Words for one peer.
  struct OutboundWords {
    let session: SessionID
    let words: [WordGroup]
  }

  let account: AccountID
  let keys: DeviceKeys
  /// This process.
  let process: UInt64
  /// The members by their short names. Of two with one name only the smaller counts.
  var members: [UInt64: DeviceID] = [:]
  var words: [DeviceID: Word] = [:]
  var known: [DeviceID: Known] = [:]
  var peers: [SessionID: Peer] = [:]
  /// This device's stores as they were when words were last compared with them.
  var own: [StoreIdentifier: Own] = [:]
  /// Stores whose vectors changed since then.
  var changedStores: Set<StoreIdentifier> = []
  /// This process's last word.
  var lastWord: (number: UInt64, at: UInt64)?
  /// Whether words may have to be made or passed on, because something changed since that was last
  /// done.
  var lacksTime = false
  /// When words are made and passed on next; nil: no time is set.
  var passesAt: UInt64?
  /// The members that lack change sets.
  private var leftBehind = LeftBehind()

  init(account: AccountID, keys: DeviceKeys, process: ProcessID) {
    self.account = account
    self.keys = keys
    self.process = process.shortName
  }

  var device: DeviceID { keys.id }

  // MARK: Members

  mutating func setMembers(_ devices: [DeviceID]) {
    members = Dictionary(devices.map { ($0.shortName, $0) }, uniquingKeysWith: min)
    lacksTime = true
  }

  /// Forgets revoked devices, with all that is known of their chains.
  mutating func forget(_ devices: Set<DeviceID>) {
    for device in devices {
      (words[device], known[device]) = (nil, nil)
      leftBehind.forget(device)
    }
    for (device, each) in known {
      known[device]?.stores = each.stores.mapValues { extent in
        Extent(
          vector: extent.vector.filter { !devices.contains($0.key.device) },
          isBelow: extent.isBelow)
      }
    }
  }

  // MARK: Sessions

  mutating func begin(
    _ session: SessionID, with device: DeviceID, process: UInt64, isMember: Bool
  ) {
    peers[session] = Peer(
      device: device, process: process, isMember: isMember,
      unsentWords: isMember ? Set(words.keys) : [])
    lacksTime = true
  }

  mutating func end(_ session: SessionID) {
    guard let peer = peers.removeValue(forKey: session) else { return }
    if !peer.isMember {
      known[peer.device] = nil
    } else if let word = words[peer.device] {
      match(word)
    }
  }

  /// Notes a peer's coverage of a store, as its session sent it: all of it if `isWhole`, since the
  /// peer may have been restored and cover less. Chains that are not known here count once they
  /// are: others may be invented.
  mutating func receive(
    _ extent: Extent, of store: StoreIdentifier, isWhole: Bool, on session: SessionID,
    isKnown: (ChainID) -> Bool
  ) {
    guard let peer = peers[session], isWhole || !peer.extents.isEmpty else { return }
    peers[session]?.extents[store] = extent
    if known[peer.device].map({ peer.extents.isEmpty && $0.process != peer.process }) ?? true {
      known[peer.device] = Known(process: peer.process)
    }
    // Otherwise a later word is of another process: the coverage that both state counts.
    guard known[peer.device]?.process == peer.process else {
      if let word = words[peer.device] { match(word, in: store) }
      return
    }
    if isWhole { known[peer.device]?.stores[store] = nil }
    add(extent.vector.filter { isKnown($0.key) }, of: store, to: peer.device)
    known[peer.device]?.stores[store]?.isBelow = extent.isBelow
  }

  /// Adds the coverage that a peer sent on its session, but only of chains of which this device
  /// covers part: others may be invented.
  mutating func recount(_ store: StoreIdentifier, from peer: Peer) {
    guard known[peer.device]?.process == peer.process, let extent = peer.extents[store],
      let own = own[store]
    else { return }
    let vector = extent.vector.filter { own.extent.vector[$0.key] != nil }
    add(vector == own.extent.vector ? own.extent.vector : vector, of: store, to: peer.device)
  }

  /// Adds to the coverage that is known of a device's process.
  mutating func add(_ vector: [ChainID: UInt64], of store: StoreIdentifier, to device: DeviceID) {
    var extent = known[device]?.stores[store] ?? Extent()
    // Assigned whole if possible, so that equal vectors share memory.
    if extent.vector.allSatisfy({ $0.value <= vector[$0.key] ?? 0 }) {
      extent.vector = vector
    } else {
      extent.vector.merge(vector, uniquingKeysWith: max)
    }
    known[device]?.stores[store] = extent
  }

  // MARK: Questions

  func covered(by device: DeviceID, of store: StoreIdentifier) -> [ChainID: UInt64] {
    known[device]?.stores[store]?.vector ?? [:]
  }

  /// For checkers: the process of a device's session, and those of its latest word and of what is
  /// believed, too.
  func knownProcesses(of device: DeviceID) -> (session: UInt64?, all: Set<UInt64>) {
    let session = peer(of: device)?.process
    let all = [session, words[device]?.version.process, known[device]?.process]
    return (session, Set(all.compactMap(\.self)))
  }

  /// Whether all other members are known to cover a change set.
  func coveredByAllOthers(of store: StoreIdentifier) -> (ChangeSetReference) -> Bool {
    let vectors = members.values.filter { $0 != device }.map { covered(by: $0, of: store) }
    return { changeSet in
      vectors.allSatisfy { $0[changeSet.chain] ?? 0 >= changeSet.sequence }
    }
  }

  /// The other members not known to cover a change set.
  func lacking(of store: StoreIdentifier) -> (ChangeSetReference) -> [DeviceID] {
    let vectors = members.values.filter { $0 != device }
      .map { (device: $0, vector: covered(by: $0, of: store)) }
    return { changeSet in
      vectors.filter { $0.vector[changeSet.chain] ?? 0 < changeSet.sequence }.map(\.device)
    }
  }

  /// Whether there is no other member.
  var isAlone: Bool { members.values.allSatisfy { $0 == device } }

  /// Whether each other member is known to be below the horizon, so that none can know what was
  /// removed.
  func areOthersBelow(in store: StoreIdentifier) -> Bool {
    let below = othersBelow(in: store)
    return members.values.allSatisfy { $0 == device || below.contains($0) }
  }

  /// The other members that are known to be below the horizon.
  func othersBelow(in store: StoreIdentifier) -> Set<DeviceID> {
    Set(
      members.values.filter { $0 != device && known[$0]?.stores[store]?.isBelow == true })
  }

  /// How many of these change sets the device is not known to cover; nil if its coverage is not
  /// known. At least one while it is below the horizon.
  func lacking(
    _ vector: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> UInt64? {
    guard let known = known[device]?.stores[store] else { return nil }
    let count = vector.reduce(0) { $0 + $1.value - min($1.value, known.vector[$1.key] ?? 0) }
    return known.isBelow ? max(1, count) : count
  }

  /// Since when a device lacks something of these vectors that it still lacks, as far as this was
  /// asked; nil: it covers them. A device that always lacks the newest writes is not late.
  mutating func lag(
    of device: DeviceID, behind vectors: [StoreIdentifier: [ChainID: UInt64]],
    at milliseconds: UInt64
  ) -> UInt64? {
    leftBehind.lag(of: device, behind: vectors, known, at: milliseconds)
  }

  /// Whether a device has all of a vector.
  func covers(
    _ part: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> Bool {
    known.covers(part, of: store, device)
  }

  // MARK: Left behind

  /// A store's vector has changed.
  mutating func noteChange(of store: StoreIdentifier, at now: UInt64) {
    leftBehind.noteChange(of: store, at: now)
    changedStores.insert(store)
    lacksTime = true
  }

  /// Looks at intervals for members left behind: the overlay may have come apart.
  ///
  /// - Returns: The members, by id, if they are others than before; otherwise nil.
  mutating func findLeftBehind(
    at now: UInt64, connected: Set<DeviceID>, vectors: () -> [StoreIdentifier: [ChainID: UInt64]]
  ) -> [DeviceID]? {
    leftBehind.find(
      at: now, among: members.values, except: device, connected: connected, known,
      vectors: vectors)
  }
}

extension [DeviceID: Coverage.Known] {
  /// Whether a device has all of a vector.
  func covers(
    _ part: [ChainID: UInt64], of store: StoreIdentifier, _ device: DeviceID
  ) -> Bool {
    let extent = self[device]?.stores[store] ?? Coverage.Extent()
    guard !extent.isBelow else { return false }
    return extent.vector == part
      || part.allSatisfy { extent.vector[$0.key] ?? 0 >= $0.value }
  }
}

extension Coverage.Own {
  init(_ store: StoreReplica) {
    let vector = store.log.vector
    self.init(
      extent: Coverage.Extent(vector: vector, isBelow: store.horizon.isBelow),
      latest: store.log.latest(Limits.wordEntries, of: vector))
  }

  init(extent: Coverage.Extent, latest: [ChangeSetLog.Published]) {
    self.extent = extent
    self.latest = latest
    digest = WordContent.digest(of: extent.vector)
  }
}
