internal import KithCrypto

/// A carrier, as one device uses it in turns: list, get and take in what is new, delete what is not
/// needed, put what is lacking (`Docs/Protocol/carriers.md`).
struct Carrier: Sendable {
  enum Phase: Sendable {
    case idle
    case listing
    case getting(Getting)
    /// `isLast`: nothing is put afterwards.
    case deleting([ObjectName], isLast: Bool)
    case putting(Deposit)
  }

  struct Getting: Sendable {
    let listing: [ObjectName: Int]
    /// The roster by which objects were last judged.
    var rosterDigest: Digest256
    /// The objects asked for and not yet answered.
    var left: Set<ObjectName> = []
    /// The objects asked for in this turn, which are not asked for again in it.
    var tried: Set<ObjectName> = []
    var count = 0
    var bytes = 0
    var doubtful = 0
  }

  /// An object that was read, and whose parts are not all applied yet.
  struct Waiting: Sendable {
    let body: ObjectBody
    let content: [InboundMessage]
    let published: HybridTime
    /// Whether its words and its author's time were applied.
    var isBodyApplied = false
    /// The stores whose parts were applied or left out.
    var done: Set<StoreIdentifier> = []
    /// The stores in `done` whose parts were not applied whole.
    var without: Set<StoreIdentifier> = []

    init(_ body: ObjectBody, _ content: [InboundMessage]) {
      (self.body, self.content) = (body, content)
      published = content.latestPublished
    }
  }

  var objects = CarrierObjects()
  /// Bounded by ``Limits/waitingObjectBytes`` between turns. The others are got again.
  private(set) var waiting: [ObjectName: Waiting] = [:]
  /// The ``CarrierReader/conditions`` at the last listing. Nil if they changed while objects were
  /// applied: then the next listing reads again those that were not applied whole.
  private var conditions: Digest256?
  var phase = Phase.idle
  /// Nil until the shell attaches it.
  var schedule: CarrierSchedule?
  /// Whether the turn under way, or the next one, was asked for.
  var isAsked = false
  var isStopping = false
  /// Whether something was taken in or put in this turn.
  var hasNews = false
  /// The pieces of objects whose put failed, until they are deleted. Only this process knows that
  /// they are no others' (``CarrierObjects/deletable(by:_:loose:)``).
  private var loosePieces: Set<ObjectName> = []
  /// Whether the last turn failed to delete. Then the next puts first.
  private var deletesLast = false
  /// Earliest time of an upload that holds only words or digests, in monotonic milliseconds.
  private var tellsAt: UInt64 = 0
  /// Since when all that this device covers is there; it counts only while ``holds(_:in:)``.
  private(set) var heldSince: UInt64?
  private(set) var listedMilliseconds: UInt64?

  /// The shell uses it from now on; it answers no earlier order.
  mutating func attach(shortestMilliseconds: UInt64, at now: UInt64) {
    phase = .idle
    boundWaiting()
    isStopping = false
    schedule = CarrierSchedule(shortestMilliseconds: shortestMilliseconds, at: now)
  }

  /// When the next turn is due; nil while one is under way.
  var dueAt: UInt64? {
    guard case .idle = phase else { return nil }
    return schedule?.dueAt
  }

  mutating func begin() {
    schedule?.begin()
    phase = .listing
  }

  mutating func forgetAll() {
    objects.forgetAll()
    waiting = [:]
  }

  // MARK: Getting

  /// Returns false if no listing was asked for.
  mutating func listed(
    _ listing: [ObjectName: Int], _ keys: CarrierKeys, _ reader: CarrierReader
  ) -> Bool {
    guard case .listing = phase else { return false }
    listedMilliseconds = reader.now.wallMilliseconds
    // One that changed its size is not what was read.
    waiting = waiting.filter { name, _ in
      listing[name].map { $0 == objects[name]?.bytes } ?? true
    }
    objects.compare(with: listing, reader)
    objects.noteListed(listing, keys, reader)
    waiting = waiting.filter { objects[$0.key]?.state == .unread }
    if conditions != reader.conditions { _ = readAgain() }
    conditions = reader.conditions
    phase = .getting(Getting(listing: listing, rosterDigest: reader.roster.digest))
    return true
  }

  /// Objects that were not taken in whole may be now. Returns those to be got again.
  private mutating func readAgain() -> Set<ObjectName> {
    var names: Set<ObjectName> = []
    for (name, object) in waiting where !object.without.isEmpty {
      waiting[name]?.done.subtract(object.without)
      waiting[name]?.without = []
    }
    for (name, object) in objects.known {
      switch object.state {
      case .foreign: objects[name]?.state = .foreign(isDue: true)
      case .applied(_, let left) where !left.isEmpty: objects[name]?.state = .unread
      case .unread, .unreadable, .applied: continue
      }
      names.insert(name)
    }
    return names
  }

  /// The objects to get next; empty: none.
  mutating func nextGets(_ reader: CarrierReader) -> [ObjectName] {
    guard case .getting(var getting) = phase else { return [] }
    trimWaiting(reader)
    if getting.rosterDigest != reader.roster.digest {
      // The records inside may open objects that came before them.
      getting.rosterDigest = reader.roster.digest
      getting.tried.subtract(readAgain())
    }
    var names: [ObjectName] = []
    for name in getting.listing.keys.sorted() where !getting.tried.contains(name) {
      guard let object = objects[name], isWanted(name, object),
        getting.count < Limits.objectsPerTurn,
        getting.bytes + object.bytes <= Limits.objectBytesPerTurn
      else { continue }
      if object.state != .unread {
        guard getting.doubtful < Limits.doubtfulObjectsPerTurn else { continue }
        getting.doubtful += 1
      }
      getting.bytes += object.bytes
      getting.count += 1
      getting.tried.insert(name)
      names.append(name)
    }
    getting.left = Set(names)
    phase = .getting(getting)
    return names
  }

  private func isWanted(_ name: ObjectName, _ object: KnownObject) -> Bool {
    guard object.bytes <= Limits.objectBytes else { return false }
    return switch object.state {
    case .unread: waiting[name] == nil
    case .unreadable: true
    case .foreign(let isDue): isDue
    case .applied: false
    }
  }

  /// Whether an object was asked for, and did not come yet.
  func awaits(_ name: ObjectName) -> Bool {
    if case .getting(let getting) = phase { getting.left.contains(name) } else { false }
  }

  /// An object that was asked for came, or is gone. Returns whether all have come.
  mutating func got(_ name: ObjectName, _ reader: CarrierReader, _ content: OpenedObject.Content?)
    -> Bool
  {
    guard case .getting(var getting) = phase, getting.left.remove(name) != nil else { return false }
    let time = reader.now.wallMilliseconds
    switch content {
    case nil: if objects[name]?.missingSince == nil { objects[name]?.missingSince = time }
    case .unreadable:
      if case .unreadable = objects[name]?.state { break }
      objects[name]?.state = .unreadable(since: time)
    case .foreign: objects[name]?.state = .foreign(isDue: false)
    case .opened(let body, let content):
      objects[name]?.state = .unread
      waiting[name] = Waiting(body, content)
    }
    phase = .getting(getting)
    return getting.left.isEmpty
  }

  // MARK: Applying

  enum Next {
    case none
    /// The object's words and its author's time.
    case object(ObjectBody)
    case part(ObjectName, ObjectBody.Part, Waiting, isComplete: Bool)
  }

  /// Returns the next object or part that can be applied. Each part is applied by itself.
  mutating func nextApplicable(_ reader: CarrierReader) -> Next {
    for (name, object) in waitingInOrder {
      switch reader.judge(object.body, published: object.published) {
      case .waits, .foreign: continue
      case .void:
        // Only its author counts, by which it is deleted.
        let body = object.body
        markApplied(
          name, ObjectBody(by: body.author, at: body.clock, under: body.epoch), without: [])
        continue
      case .ready: break
      }
      if !object.isBodyApplied {
        waiting[name]?.isBodyApplied = true
        return .object(object.body)
      }
      guard let pieces = objects.pieces(of: object.body) else { continue }
      let left = object.body.parts.filter { !object.done.contains($0.store) }
      if let part = left.first(where: reader.isReady) {
        let isComplete = !pieces.contains { $0.without.contains(part.store) }
        return .part(name, part, object, isComplete: isComplete)
      }
      if left.isEmpty {
        let body = object.body.bounded(by: object.content, with: pieces.map(\.body))
        markApplied(name, body, without: object.without)
      }
    }
    return .none
  }

  /// If the notes of objects would become too large, it counts as one of an unknown epoch.
  private mutating func markApplied(
    _ name: ObjectName, _ body: ObjectBody, without: Set<StoreIdentifier>
  ) {
    let fits = objects.bodyBytes + body.sizeBound <= Limits.objectBodyBytes
    objects[name]?.state = fits ? .applied(body, without: without) : .foreign(isDue: false)
    waiting[name] = nil
    hasNews = true
  }

  /// A part was applied, or left out.
  mutating func noteApplied(
    _ part: ObjectBody.Part, of name: ObjectName, isWhole: Bool, _ reader: CarrierReader
  ) {
    waiting[name]?.done.insert(part.store)
    hasNews = true
    guard !isWhole else { return }
    waiting[name]?.without.insert(part.store)
    // Limits that changed since the listing may be as they were at the next one.
    if conditions != reader.conditions { conditions = nil }
  }

  /// All requested objects have come. Keeps those that cannot be applied yet.
  private mutating func trimWaiting(_ reader: CarrierReader) {
    for (name, object) in waiting {
      guard reader.judge(object.body, published: object.published) == .foreign else { continue }
      objects[name]?.state = .foreign(isDue: false)
      waiting[name] = nil
    }
    boundWaiting()
  }

  private mutating func boundWaiting() {
    var bytes = 0
    for (name, _) in waitingInOrder {
      bytes += objects[name]?.bytes ?? 0
      if bytes > Limits.waitingObjectBytes { waiting[name] = nil }
    }
  }

  private var waitingInOrder: [(key: ObjectName, value: Waiting)] {
    waiting.sorted { ($0.value.body.clock, $0.key) < ($1.value.body.clock, $1.key) }
  }

  // MARK: Deleting

  /// The objects to delete before something is put; empty: none now.
  mutating func firstDeletions(_ reader: CarrierReader) -> [ObjectName] {
    deletesLast ? [] : nextDeletions(reader, isLast: false)
  }

  /// If a turn could not delete, the next puts before it tries again.
  mutating func lastDeletions(_ reader: CarrierReader) -> [ObjectName] {
    deletesLast ? nextDeletions(reader, isLast: true) : []
  }

  private mutating func nextDeletions(_ reader: CarrierReader, isLast: Bool) -> [ObjectName] {
    let bodies = waiting.values.map(\.body)
    let names = objects.deletable(by: reader, bodies, loose: loosePieces)
    if !names.isEmpty { phase = .deleting(names, isLast: isLast) }
    return names
  }

  /// All that were to be deleted are gone. Returns whether that ends the turn; nil if none were.
  mutating func deleted() -> Bool? {
    guard case .deleting(let names, let isLast) = phase else { return nil }
    for name in names { objects[name] = nil }
    loosePieces.subtract(names)
    deletesLast = false
    return isLast
  }

  // MARK: Putting

  /// Begins to put what the objects do not bring, with those of the words that none has.
  mutating func put(_ words: [Word], _ author: ObjectAuthor) {
    let reader = author.reader
    let now = reader.now.monotonicMilliseconds
    let plan = CarrierPlan(
      objects.counting(for: reader), words, author, mayTell: now >= tellsAt,
      isAsked: isAsked || isStopping)
    if plan != nil {
      let pace = UInt64(reader.roster.sortedMembers.count) * Limits.carrierWordMilliseconds
      tellsAt = now + pace
    }
    phase = .putting(Deposit(plan, author))
  }

  /// The next object to put; nil if this is not the time to put.
  mutating func nextPut(
    _ author: ObjectAuthor, clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> Deposit.Next? {
    guard case .putting(var deposit) = phase else { return nil }
    let next = deposit.next(by: author, clock: &timeKeeper, entropy: &entropy)
    phase = .putting(deposit)
    return next
  }

  /// An object was put. Returns false if none of that name was under way.
  mutating func stored(_ name: ObjectName, bytes: Int) -> Bool {
    guard case .putting(var deposit) = phase, let known = deposit.stored(name, bytes: bytes) else {
      return false
    }
    objects[name] = known
    hasNews = true
    phase = .putting(deposit)
    return true
  }

  /// When drafts may be published for it, by the monotonic clock. A device that is not certain of its
  /// time waits a while: a wrong time would order its writes wrongly for good. `since` is when its
  /// first carrier was attached.
  func publishesAt(_ timeKeeper: TimeKeeper, since: UInt64?) -> UInt64 {
    let now = timeKeeper.now.monotonicMilliseconds
    guard !timeKeeper.isCertain, !isAsked else { return now }
    return (since ?? now) + Limits.carrierUncertainMilliseconds
  }

  // MARK: The end of a turn

  /// `since` is when the first carrier was attached; `hasDrafts`: some wait to be published.
  mutating func end(_ reader: CarrierReader, hasDrafts: Bool, since: UInt64?) {
    heldSince = holds(reader.stores.keys, in: reader) ? heldSince ?? listedMilliseconds : nil
    noteLoosePieces()
    phase = .idle
    if schedule?.isAsked == false { isAsked = false }
    schedule?.end(isNews: hasNews, at: reader.now.monotonicMilliseconds)
    // A listing is to show what was put.
    if hasNews, heldSince == nil {
      schedule?.plan(at: reader.now.monotonicMilliseconds + Limits.carrierWriteMilliseconds / 2)
    }
    hasNews = false
    let publishes = publishesAt(reader.timeKeeper, since: since)
    if hasDrafts, publishes > reader.now.monotonicMilliseconds { schedule?.plan(at: publishes) }
  }

  private mutating func noteLoosePieces() {
    if case .putting(let deposit) = phase { loosePieces.formUnion(deposit.loosePieces) }
  }

  /// Whether the last listing showed all that this device covers of some stores.
  func holds(_ stores: some Sequence<StoreIdentifier>, in reader: CarrierReader) -> Bool {
    guard listedMilliseconds != nil else { return false }
    let brought = Brought(by: objects.counting(for: reader, .listed), reader)
    return stores.allSatisfy(brought.coversAll)
  }

  mutating func fail(retryAfter: UInt64?, at now: UInt64) {
    if case .deleting = phase { deletesLast = true }
    noteLoosePieces()
    phase = .idle
    boundWaiting()
    hasNews = false
    schedule?.fail(retryAfter: retryAfter, at: now)
  }
}
