internal import KithCore

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

  /// Admits a session; nil if there are too many, or the transport is shutting down.
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

  /// Sets the handle of an admitted session.
  mutating func setLink(_ link: SessionLink, of id: SessionID) {
    entries[id]?.link = link
  }

  func link(of id: SessionID) -> SessionLink? { entries[id]?.link }

  /// The handles of the established sessions.
  var links: [SessionLink] { entries.values.compactMap(\.link) }

  func isMembershipOnly(_ id: SessionID) -> Bool { entries[id]?.isMembershipOnly ?? false }

  /// Lifts the limits of a membership-only session. Returns false if it is not one.
  mutating func promote(_ id: SessionID) -> Bool {
    guard entries[id]?.isMembershipOnly == true else { return false }
    entries[id]?.isMembershipOnly = false
    return true
  }

  /// Records the reason why this side closes a session; the first one is kept.
  mutating func setCloseReason(_ reason: CloseReason, of id: SessionID) {
    if entries[id]?.closeReason == nil { entries[id]?.closeReason = reason }
  }

  /// Removes a session, and returns the reason why this side closed it, if it did.
  mutating func remove(_ id: SessionID) -> CloseReason? {
    entries.removeValue(forKey: id)?.closeReason
  }

  /// Admits no more sessions, and returns all open ones.
  mutating func close() -> [SessionLink] {
    isClosed = true
    return entries.sorted { $0.key < $1.key }.compactMap(\.value.link)
  }
}
