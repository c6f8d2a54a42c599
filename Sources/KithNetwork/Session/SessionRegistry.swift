internal import KithCore

/// The established sessions, as a value.
struct SessionRegistry {
  private struct Entry {
    var link: SessionLink?
    var isMembershipOnly: Bool
    var closeReason: CloseReason?
  }

  private let limit: Int
  private let membershipLimit: Int
  private var entries: [SessionID: Entry] = [:]
  private var lastID: UInt64 = 0
  private var isClosed = false

  init(limit: Int, membershipLimit: Int) {
    self.limit = limit
    self.membershipLimit = membershipLimit
  }

  var count: Int { entries.count }

  /// Takes in a session; nil: there are too many, or the transport shuts down.
  mutating func admit(isMembershipOnly: Bool) -> SessionID? {
    guard !isClosed, entries.count < limit else { return nil }
    if isMembershipOnly {
      guard entries.values.count(where: \.isMembershipOnly) < membershipLimit else { return nil }
    }
    lastID += 1
    let id = SessionID(rawValue: lastID)
    entries[id] = Entry(isMembershipOnly: isMembershipOnly)
    return id
  }

  /// Sets the handle by which an admitted session is reached.
  mutating func setLink(_ link: SessionLink, of id: SessionID) {
    entries[id]?.link = link
  }

  func link(of id: SessionID) -> SessionLink? { entries[id]?.link }

  /// The sessions that are in place.
  var links: [SessionLink] { entries.values.compactMap(\.link) }

  func isMembershipOnly(_ id: SessionID) -> Bool { entries[id]?.isMembershipOnly ?? false }

  /// Lifts the limits of a membership-only session; false: it is none.
  mutating func promote(_ id: SessionID) -> Bool {
    guard entries[id]?.isMembershipOnly == true else { return false }
    entries[id]?.isMembershipOnly = false
    return true
  }

  /// Notes why this side closes a session; the first reason stays.
  mutating func setCloseReason(_ reason: CloseReason, of id: SessionID) {
    if entries[id]?.closeReason == nil { entries[id]?.closeReason = reason }
  }

  /// Forgets a session, and says why this side closed it, if it did.
  mutating func remove(_ id: SessionID) -> CloseReason? {
    entries.removeValue(forKey: id)?.closeReason
  }

  /// Admits no more, and gives all that live.
  mutating func close() -> [SessionLink] {
    isClosed = true
    return entries.sorted { $0.key < $1.key }.compactMap(\.value.link)
  }
}
