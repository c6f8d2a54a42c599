/// Each run with carriers has some of these.
package enum CarrierFault: String, Codable, CaseIterable, Sendable {
  /// A listing is up to 50 minutes old, or older than the one before.
  case lag
  /// A listing lacks some objects.
  case partialListing
  /// An object comes cut, or not at all.
  case get
  /// An object is not stored, stored cut, or stored though that is reported as failed.
  case put
  /// Objects stay though they were deleted.
  case delete
  /// Operations take minutes.
  case slow
  /// Objects vanish or change; all may vanish.
  case loss
  /// All objects are again those of an old copy.
  case setBack
  /// Objects of nobody.
  case junk
  /// A member's objects say what is not so.
  case liar
  /// A revoked device deletes and puts objects.
  case thief
}

/// A fault of a carrier's objects.
package enum Spoiling: String, Codable, CaseIterable, Sendable {
  case wipe
  case keepCopy
  case setBack
  case lose
  case damage
  case junk
}

package enum Lie: String, Codable, CaseIterable, Sendable {
  /// It says that it brings change sets that nobody has.
  case tooMuch
  /// It has the headers, and no values.
  case hollow
  /// It is above something that nobody has.
  case unreachable
  /// It has nothing, says that it has everything, and is later than all others.
  case latest
  /// It needs a piece that is not there.
  case incomplete
  /// It brings nothing, and says that it brings everything.
  case empty
}

package enum Theft: String, Codable, CaseIterable, Sendable {
  case delete
  /// An object under a name that members recognise.
  case garbage
  /// An object under an epoch that only the thief made, with boxes for all.
  case epoch
  /// An object again, under another name.
  case copy
}
