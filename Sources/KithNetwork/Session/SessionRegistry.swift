internal import KithCore

struct SessionRegistry {
  private struct Entry {
    var link: SessionLink?
    var isMembershipOnly: Bool
    var closeReason: CloseReason?
  }

  private let limit: Int
  private var entries: [SessionID: Entry] = [:]
  private var lastID: UInt64 = 0
  private var isClosed = false

  init(limit: Int) {
    self.limit = limit
  }

  /// Nil: too many sessions, or the transport is shutting down.
  mutating func admit(isMembershipOnly: Bool) -> SessionID? {
    guard !isClosed, entries.count < limit else { return nil }
    if isMembershipOnly {
      let count = entries.values.count(where: \.isMembershipOnly)
      guard count < NetworkLimits.membershipSessions else { return nil }
    }
    lastID += 1
    let id = SessionID(rawValue: lastID)
    entries[id] = Entry(isMembershipOnly: isMembershipOnly)
    return id
  }

  mutating func setLink(_ link: SessionLink, of id: SessionID) {
    entries[id]?.link = link
  }

  func link(of id: SessionID) -> SessionLink? { entries[id]?.link }

  /// Of the established sessions.
  var links: [SessionLink] { entries.values.compactMap(\.link) }

  func isMembershipOnly(_ id: SessionID) -> Bool { entries[id]?.isMembershipOnly ?? false }

  /// False if the session is not membership-only.
  mutating func promote(_ id: SessionID) -> Bool {
    guard entries[id]?.isMembershipOnly == true else { return false }
    entries[id]?.isMembershipOnly = false
    return true
  }

  /// Keeps the first reason.
  mutating func setCloseReason(_ reason: CloseReason, of id: SessionID) {
    if entries[id]?.closeReason == nil { entries[id]?.closeReason = reason }
  }

  /// Returns why this side closed the session, if it did.
  mutating func remove(_ id: SessionID) -> CloseReason? {
    entries.removeValue(forKey: id)?.closeReason
  }

  /// Admits no more; returns the open ones.
  mutating func close() -> [SessionLink] {
    isClosed = true
    return entries.sorted { $0.key < $1.key }.compactMap(\.value.link)
  }
}
