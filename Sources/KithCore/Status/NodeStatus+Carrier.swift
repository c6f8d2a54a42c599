public import FoundationEssentials

extension NodeStatus {
  /// A carrier: storage through which devices exchange sealed objects without meeting.
  public struct Carrier: Codable, Hashable, Sendable {
    /// Its kind: `folder`, `webdav` or `s3`, or one of a program's own.
    public var kind: String
    /// Its path or URL.
    public var location: String
    /// Whether the account's other devices use it too.
    public var isShared: Bool
    /// When it last listed all its objects, in milliseconds since 1970; nil: not since the start.
    package var listedMilliseconds: UInt64?
    /// Since when it holds all that this device covers, as a listing showed; nil: it does not.
    package var heldSinceMilliseconds: UInt64?
    /// How many objects are known there.
    public var objects = 0
    /// The bytes of these objects.
    public var bytes = 0
    /// Objects that cannot be used yet: they are above data that this device lacks, or their epoch or
    /// author is unknown.
    package var waiting = 0
    /// Objects that wait because their change sets are ahead of this device's time.
    package var ahead = 0
    /// Objects that do not open; each is deleted after an hour.
    package var unreadable = 0
    /// Objects that the last listing lacked; after an hour they count as gone.
    package var missing = 0
    /// Objects that vanished although others do not bring their data, since the start.
    package var vanished = 0
    /// Whether drafts wait because this device is not certain of its time.
    package var waitsForTime = false
    /// Why it cannot be used, and what to do; nil if nothing is known to be wrong.
    public var problem: String?
    /// When that was last so, in milliseconds since 1970.
    package var problemMilliseconds: UInt64?

    /// When it last listed all its objects; nil: not since the start.
    public var listed: Date? { listedMilliseconds.map(Date.init(milliseconds:)) }
    /// Since when it holds all that this device covers, as a listing showed; nil: it does not.
    public var heldSince: Date? { heldSinceMilliseconds.map(Date.init(milliseconds:)) }

    package init(kind: String, location: String, isShared: Bool) {
      self.kind = kind
      self.location = location
      self.isShared = isShared
    }

    mutating func count(_ known: KithCore.Carrier, _ timeKeeper: TimeKeeper) {
      vanished = known.objects.vanished
      for (name, object) in known.objects.known {
        guard object.missingSince == nil else {
          missing += 1
          continue
        }
        objects += 1
        bytes += object.bytes
        switch object.state {
        case .unread:
          guard let held = known.waiting[name] else { break }
          if timeKeeper.wait(for: held.published) != nil { ahead += 1 } else { waiting += 1 }
        case .foreign: waiting += 1
        case .unreadable: unreadable += 1
        case .applied: break
        }
      }
    }
  }
}
