internal import KithCrypto

/// Words: receiving, making, comparing and passing on.
extension Coverage {
  // MARK: Applying

  /// Applies words that a peer or a carrier brought. Checks the signatures of those that are later
  /// than the kept ones. Returns false if one is invalid: nothing was applied.
  ///
  /// `digest` is that of the words which the peer keeps, from a full `Have`. If it differs from
  /// ours, although no word is under way, the peer is sent all words again.
  mutating func receive(
    _ groups: [WordGroup], digest: Digest128? = nil, on session: SessionID? = nil, at now: UInt64,
    with repeater: InboundMessage.Repeater?
  ) -> Bool {
    let received = groups.flatMap { group in
      group.said.compactMap { said in
        members[said.device].map { Word(said, by: $0, content: group.content) }
      }
    }
    let (new, account) = (received.filter(isLater), account)
    let signed = values(new.count, by: 16, with: repeater) { new[$0].isSigned(in: account) }
    guard signed.allSatisfy(\.self) else { return false }
    for word in new { keep(word) }
    guard let session, let peer = peers[session] else { return true }
    for word in received where words[word.device]?.version == word.version {
      peers[session]?.unsentWords.remove(word.device)
    }
    if !received.isEmpty { peers[session]?.movedAt = now }
    if let digest, peer.isMember, digest != self.digest,
      now > peer.movedAt + Limits.wordQuietMilliseconds
    {
      peers[session]?.unsentWords = Set(words.keys)
      lacksTime = true
    }
    return true
  }

  /// Whether a word is later than the kept one of its device.
  private func isLater(_ word: Word) -> Bool {
    words[word.device].map { $0.version < word.version } ?? true
  }

  private mutating func keep(_ word: Word) {
    guard isLater(word) else { return }
    words[word.device] = word
    for (session, peer) in peers where peer.isMember {
      peers[session]?.unsentWords.insert(word.device)
    }
    lacksTime = true
    if word.device != device { count(word) }
  }

  /// Whether another process of this device made a word of the last number: this device's words do
  /// not count any more.
  var isSilenced: Bool {
    words[device].map { $0.version.number == Word.lastNumber && $0.version.process != process }
      ?? false
  }

  /// The digest by which peers compare the words that they keep.
  ///
  /// - Complexity: O(*n* log *n*) in the devices.
  var digest: Digest128 {
    var hasher = Blake2b.Hasher()
    for word in words.values.sorted(by: { $0.device < $1.device }) {
      hasher.update(word.device)
      hasher.update(word.version.process.bigEndianBytes)
      hasher.update(word.version.number.bigEndianBytes)
    }
    return Digest128(hasher.digest256())
  }

  // MARK: Believing

  /// Updates the coverage that is known of a device by its new word.
  private mutating func count(_ word: Word) {
    let process = word.version.process
    if known[word.device]?.process != process {
      known[word.device] = Known(process: process)
      if let peer = peer(of: word.device), peer.process == process {
        for store in peer.extents.keys { recount(store, from: peer) }
      }
    }
    forgetInvented(beside: word)
    for (store, said) in word.content.stores {
      known[word.device]?.stores[store, default: Extent()].isBelow = said.isBelow
    }
    match(word)
  }

  /// Forgets stores that only earlier words of the device named: a word can name any.
  private mutating func forgetInvented(beside word: Word) {
    guard let stores = known[word.device]?.stores else { return }
    known[word.device]?.stores = stores.filter { store, extent in
      own[store] != nil || word.content.stores[store] != nil || !extent.vector.isEmpty
    }
  }

  /// Believes what a kept word says of stores that this device has, as far as this device covers it:
  /// of each store the entries, or all if the digests are equal.
  ///
  /// During a session with another process of the device, only as far as that process sent it, too.
  mutating func match(_ word: Word) {
    for store in word.content.stores.keys { match(word, in: store) }
  }

  mutating func match(_ word: Word, in store: StoreIdentifier) {
    let (device, process) = (word.device, word.version.process)
    guard known[device]?.process == process, let said = word.content.stores[store] else { return }
    let other = peer(of: device).flatMap { $0.process == process ? nil : $0 }
    if let other {
      known[device]?.stores[store, default: Extent()].isBelow =
        said.isBelow || other.extents[store]?.isBelow == true
    }
    guard let own = own[store] else { return }
    var vector = own.extent.vector
    if said.digest != own.digest { vector = vector.limited(by: said.latest) }
    if let other { vector = vector.limited(by: other.extents[store]?.vector ?? [:]) }
    add(vector, of: store, to: device)
  }

  /// The session with a member that sent a whole vector.
  func peer(of device: DeviceID) -> Peer? {
    peers.values.first { $0.device == device && $0.isMember && !$0.extents.isEmpty }
  }

  // MARK: When

  func needsTime(at now: UInt64) -> Bool {
    !peers.isEmpty && lacksTime && passesAt ?? .max > now + Limits.wordWaitMilliseconds
  }

  /// Sets a time to make and pass on words. `jitter` is random, 0 to 255.
  mutating func setTime(at now: UInt64, jitter: UInt64) {
    let wait = Limits.wordWaitMilliseconds
    passesAt = min(passesAt ?? .max, now + wait / 2 + wait * jitter / 512)
  }

  /// When ``passOnWords(at:canSend:stores:own:)`` is due; nil: after another event.
  var dueAt: UInt64? { peers.isEmpty ? nil : passesAt }

  // MARK: Making and passing on

  /// Compares words with the own stores, makes this device's word, and returns the words for peers.
  ///
  /// `stores` are the own stores. `isNews`: more may be known now.
  mutating func passOnWords(
    at now: Instant, canSend: (SessionID) -> Bool, stores: some Collection<StoreIdentifier>,
    own: (StoreIdentifier) -> Own?
  ) -> (outbound: [OutboundWords], isNews: Bool) {
    passesAt = nil
    let isNews = look(at: stores, own)
    makeWord(at: now)
    lacksTime = false
    var outbound: [OutboundWords] = []
    for session in peers.keys.sorted() {
      guard let peer = peers[session], !peer.unsentWords.isEmpty else { continue }
      guard canSend(session) else {
        lacksTime = true
        continue
      }
      // A process need not be sent its own.
      let words = peer.unsentWords.compactMap { self.words[$0] }.filter {
        $0.version.process != peer.process
      }
      peers[session]?.unsentWords = []
      guard !words.isEmpty else { continue }
      peers[session]?.movedAt = now.monotonicMilliseconds
      outbound.append(OutboundWords(session: session, words: WordGroup.groups(of: words)))
    }
    return (outbound, isNews)
  }

  /// Compares words, and the coverage that sessions sent, with the own stores that changed. Returns
  /// whether any did.
  @discardableResult
  mutating func look(
    at stores: some Collection<StoreIdentifier>, _ own: (StoreIdentifier) -> Own?
  ) -> Bool {
    let changed = stores.filter { self.own[$0] == nil || changedStores.contains($0) }
    changedStores = []
    guard !changed.isEmpty else { return false }
    for store in changed { self.own[store] = own(store) }
    for peer in peers.values { for store in changed { recount(store, from: peer) } }
    for word in words.values where word.device != device { match(word) }
    return true
  }

  /// Makes this device's word if its coverage differs from its last word and a word is due.
  ///
  /// `isFirst`: in any case, since the process made no word yet, and is about to send its first
  /// `Have`. `isPaced`: less often the more members there are.
  mutating func makeWord(at now: Instant, isFirst: Bool = false, isPaced: Bool = true) {
    let (kept, content) = (words[device], content())
    guard kept?.content != content || isFirst else { return }
    if let lastWord {
      // Two running copies of a device would answer each other without end.
      let isOwn = kept?.version.process == process
      let pace = isOwn ? (isPaced ? self.pace : 0) : Limits.haveIntervalMilliseconds
      guard now.monotonicMilliseconds >= lastWord.at + pace else {
        passesAt = min(passesAt ?? .max, lastWord.at + pace)
        return
      }
    }
    let last = max(lastWord?.number ?? 0, kept?.version.number ?? 0)
    let number = max(now.wallMilliseconds, last + 1)
    guard number <= Word.lastNumber else { return }
    lastWord = (number, now.monotonicMilliseconds)
    let version = Word.Version(number: number, process: process)
    keep(Word(content, version: version, account: account, keys: keys))
  }

  /// The least milliseconds between this process's words.
  private var pace: UInt64 {
    max(Limits.wordWaitMilliseconds, UInt64(members.count) * Limits.wordPaceMilliseconds)
  }

  private func content() -> WordContent {
    var stores = own.mapValues {
      WordContent.Store(digest: $0.digest, isBelow: $0.extent.isBelow)
    }
    let latest = own.flatMap { store, own in own.latest.map { (store: store, published: $0) } }
      .sorted {
        ($1.published.clock, $0.store, $0.published.chain)
          < ($0.published.clock, $1.store, $1.published.chain)
      }
    for (store, published) in latest.prefix(Limits.wordEntries) {
      stores[store]?.latest[published.chain] = published.covered
    }
    return WordContent(stores)
  }

  /// The words' parts of a full `Have`: the first time on a session this device's own, and the
  /// digest of those kept. None if the peer is not a member.
  mutating func wordsForHave(
    on session: SessionID, at now: Instant
  ) -> (words: [WordGroup], digest: Digest128?) {
    guard let peer = peers[session], peer.isMember else { return ([], nil) }
    if lastWord == nil { makeWord(at: now, isFirst: true) }
    guard !peer.isIntroduced, let word = words[device] else { return ([], digest) }
    peers[session]?.isIntroduced = true
    peers[session]?.unsentWords.remove(word.device)
    return (WordGroup.groups(of: [word]), digest)
  }
}

extension [ChainID: UInt64] {
  /// The chains of both, each with the lower sequence.
  fileprivate func limited(by other: Self) -> Self {
    other.reduce(into: [:]) { result, entry in
      if let sequence = self[entry.key] { result[entry.key] = Swift.min(sequence, entry.value) }
    }
  }
}
