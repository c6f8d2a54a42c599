internal import KithCrypto

/// The objects of a carrier as this device knows them, and what follows from them. An object counts
/// as listed until listings lacked it for an hour: they may be old.
struct CarrierObjects: Sendable {
  private(set) var known: [ObjectName: KnownObject] = [:]
  private var unsaved: Set<ObjectName> = []
  /// The bytes of all bodies.
  private(set) var bodyBytes = 0
  /// Objects that vanished although others do not bring what they brought.
  private(set) var vanished = 0

  subscript(name: ObjectName) -> KnownObject? {
    get { known[name] }
    set {
      guard known[name] != newValue else { return }
      note(name, newValue)
      unsaved.insert(name)
    }
  }

  /// The object's words do not count any more.
  mutating func forgetWords(of name: ObjectName) {
    guard case .applied(var body, let without)? = known[name]?.state else { return }
    body.words = []
    self[name]?.state = .applied(body, without: without)
  }

  mutating func restore(_ name: ObjectName, _ object: KnownObject) { note(name, object) }

  mutating func forgetAll() {
    unsaved.formUnion(known.keys)
    (known, bodyBytes) = ([:], 0)
  }

  private mutating func note(_ name: ObjectName, _ object: KnownObject?) {
    bodyBytes += (object?.body?.sizeBound ?? 0) - (known[name]?.body?.sizeBound ?? 0)
    known[name] = object
  }

  /// The mutations that store what changed.
  mutating func save(of carrier: CarrierID) -> [Mutation] {
    defer { unsaved = [] }
    return unsaved.sorted().map { name in
      let key = RowKey.object(carrier, name)
      return known[name].map { .put(key, $0.encoded()) } ?? .remove(key)
    }
  }

  // MARK: Listings

  /// Compares with a listing, and forgets what was missing for an hour.
  mutating func compare(with listing: [ObjectName: Int], _ reader: CarrierReader) {
    let now = reader.now.wallMilliseconds
    var gone: [ObjectBody] = []
    for (name, object) in known {
      self[name]?.setBack(to: now)
      if listing[name] == object.bytes {
        self[name]?.missingSince = nil
        if object.seenSince == nil { self[name]?.seenSince = now }
      } else if listing[name] != nil, object.body == nil {
        // It was being written.
        self[name]?.bytes = listing[name] ?? 0
        self[name]?.missingSince = nil
      } else if object.body == nil {
        // Nothing is lost with it, and names that come and go would fill the memory.
        self[name] = nil
      } else if let since = object.missingSince {
        guard Self.isPast(Limits.carrierHourMilliseconds, since, now) else { continue }
        if let body = object.body, isCounting(body, reader), !body.isPiece { gone.append(body) }
        self[name] = nil
      } else {
        self[name]?.missingSince = now
      }
    }
    guard !gone.isEmpty else { return }
    let brought = Brought(by: counting(for: reader), reader)
    vanished += gone.count { body in !body.parts.allSatisfy(brought.covers) }
  }

  /// Notes the listed names that a member or a former member made.
  mutating func noteListed(
    _ listing: [ObjectName: Int], _ keys: CarrierKeys, _ reader: CarrierReader
  ) {
    let now = reader.now.wallMilliseconds
    for (name, bytes) in listing where known[name] == nil && keys.made(name) {
      // No device makes one so large.
      let isTooLarge = bytes > Limits.objectBytes
      self[name] = KnownObject(
        state: isTooLarge ? .unreadable(since: now) : .unread, bytes: bytes, seenSince: now)
    }
  }

  /// Whether a time is so long ago.
  static func isPast(_ wait: UInt64, _ since: UInt64, _ now: UInt64) -> Bool {
    now >= since && now - since >= wait
  }

  // MARK: Counting

  enum Which {
    case noted
    /// The objects that the last listing showed.
    case listed
    /// The listed objects that were first listed at least an hour ago.
    case old
  }

  /// An object that counts.
  struct Counted {
    var name: ObjectName
    var body: ObjectBody
    /// The parts of the object that count.
    var parts: [ObjectBody.Part]
    /// Since when it is known to listings; nil if none showed it yet, because it was put just now.
    var seenSince: UInt64?

    var rank: ObjectBody.Rank { body.rank(name) }
  }

  /// The objects that count: taken in, under the newest epoch, by members, with all pieces. The
  /// latest comes first.
  func counting(for reader: CarrierReader, _ which: Which = .noted) -> [Counted] {
    known.compactMap { name, object -> Counted? in
      guard case .applied(let body, let left) = object.state, !body.isPiece,
        isCounting(body, reader), isIn(which, object, reader),
        body.pieces.allSatisfy({ piece in
          guard let piece = known[piece], piece.body?.isPiece == true else { return false }
          return which == .noted || piece.isThere
        })
      else { return nil }
      return Counted(
        name: name, body: body,
        parts: body.parts.filter { !left.contains($0.store) && reader.counts($0) },
        seenSince: object.seenSince)
    }.sorted { $1.rank < $0.rank }
  }

  private func isCounting(_ body: ObjectBody, _ reader: CarrierReader) -> Bool {
    body.epoch == reader.epoch?.id && reader.roster.isMember(body.author)
  }

  private func isIn(_ which: Which, _ object: KnownObject, _ reader: CarrierReader) -> Bool {
    switch which {
    case .noted: true
    case .listed: object.isThere
    case .old:
      object.isThere
        && object.seenSince.map {
          Self.isPast(Limits.carrierHourMilliseconds, $0, reader.now.wallMilliseconds)
        } == true
    }
  }

  /// The pieces of an object; nil unless all were taken in.
  func pieces(of body: ObjectBody) -> [(body: ObjectBody, without: Set<StoreIdentifier>)]? {
    var pieces: [(ObjectBody, Set<StoreIdentifier>)] = []
    for name in body.pieces {
      guard case .applied(let piece, let left)? = known[name]?.state, piece.isPiece else {
        return nil
      }
      pieces.append((piece, left))
    }
    return pieces
  }

  // MARK: Deleting

  /// The objects to delete: the last listing showed them, and they did not open for an hour, or
  /// nobody needs them. `waiting`: objects that were read and wait; `loose`: pieces that this process
  /// put, and does not know to have put the rest of.
  ///
  /// Other objects contain everything that each returned one contains, so a reader lacks nothing
  /// without it (`Docs/Decisions/carriers.md`, "Deleting").
  func deletable(
    by reader: CarrierReader, _ waiting: [ObjectBody], loose: Set<ObjectName> = []
  ) -> [ObjectName] {
    let now = reader.now.wallMilliseconds
    var names: [ObjectName] = []
    var candidates: [(rank: ObjectBody.Rank, body: ObjectBody)] = []
    let needed = Set((known.values.compactMap(\.body) + waiting).flatMap(\.pieces))
    for (name, object) in known where object.isThere {
      let seen = object.seenSince ?? now
      switch object.state {
      case .unreadable(let since):
        if Self.isPast(Limits.carrierHourMilliseconds, since, now) { names.append(name) }
      case .applied(let body, _) where reader.roster.isRevoked(body.author):
        if Self.isPast(Limits.carrierHourMilliseconds, seen, now) { names.append(name) }
      case .applied(let body, _) where body.isPiece:
        // The object that names it may only not have been read yet. This process puts again what a
        // loose piece has, and a put that failed may still come to an end.
        let wait =
          loose.contains(name) ? Limits.carrierHourMilliseconds : Limits.carrierDayMilliseconds
        if !needed.contains(name), Self.isPast(wait, seen, now) { names.append(name) }
      case .applied(let body, _): candidates.append((body.rank(name), body))
      case .unread, .foreign: break
      }
    }
    let odd = counting(for: reader).flatMap(\.parts).filter(reader.isOdd).map(\.store)
    var later = Brought(reader.keepingAll, odd: Set(odd))
    let counting = counting(for: reader, .old)
    var rest = counting[...]
    // Without the epoch's boxes, members that lack it cannot open what would replace an old object.
    let opensForAll = counting.contains { $0.body.rosterDigest == reader.roster.digest }
    candidates.sort { $1.rank < $0.rank }
    for (rank, body) in candidates where body.epoch == reader.epoch?.id {
      while let next = rest.first, rank < next.rank {
        later.add(next)
        rest = rest.dropFirst()
      }
      if later.bring(body, opensForAll: opensForAll) { names.append(rank.name) }
    }
    for object in rest { later.add(object) }
    for (rank, body) in candidates where body.epoch != reader.epoch?.id && opensForAll {
      if later.bring(body, opensForAll: opensForAll) { names.append(rank.name) }
    }
    return names.sorted()
  }
}
