/// An event of a carrier, or of the device's use of it.
package enum CarrierEvent: Sendable {
  /// This device uses it from now on. The time is the least between two turns that nothing asked for.
  case attached(shortestMilliseconds: UInt64)
  /// It is no longer used; all that is known of its objects is forgotten.
  case removed
  /// A person asks for a turn, which publishes even if the time is not certain.
  case asked
  /// The storage may have changed.
  case changed
  /// The node stops after this turn.
  case stopping
  /// Names and sizes of all objects. Names that no object can have are left out.
  case listed([ObjectName: Int])
  /// Nil: it is gone.
  case got(ObjectName, OpenedObject?)
  case stored(ObjectName, bytes: Int)
  /// All that were to be deleted are gone.
  case deleted
  /// The last order failed. The time is what the storage asked to wait.
  case failed(retryAfterMilliseconds: UInt64?)
}

/// An order to the shell; the next comes after the answer.
package enum CarrierOrder: Sendable {
  /// Hand in `CarrierEvent.listed`.
  case list
  /// Hand in `CarrierEvent.got` for each.
  case get([ObjectName])
  /// Hand in `CarrierEvent.stored`.
  case put(OutboundObject)
  /// Hand in `CarrierEvent.deleted`.
  case delete([ObjectName])
  /// The turn is over: nothing is left to do now.
  case rest
}
