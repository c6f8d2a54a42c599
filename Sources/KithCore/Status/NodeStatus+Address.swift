extension NodeStatus {
  /// An address at which a node calls other devices, and what came of the last call.
  package struct Address: Codable, Hashable, Sendable {
    /// Where the address comes from.
    package enum Source: String, Codable, Hashable, Sendable {
      /// A person named it: `--peer`, or `kith devices meet`.
      case named
      /// The device was met there, or another device sent the address.
      case remembered
      /// The device's beacons come from there on the local network.
      case heard
    }

    /// How the last call ended.
    package enum Outcome: String, Codable, Hashable, Sendable {
      /// A device of the account answered.
      case met
      /// The host refused the connection.
      case nothingListens
      case noAnswer
      case noRoute
      /// The name has no known address.
      case unknownHost
      /// Something answered, but not with the account's key.
      case notOfAccount
      /// Another device of the account answered than the one that is looked for.
      case anotherDevice
      case thisDevice
      /// This node has as many sessions as it may have, or no key.
      case sessionLimit
      case failed
    }

    /// `host:port`.
    package var address: String
    package var source: Source
    /// The device that is looked for or was met there; nil: unknown.
    package var device: DeviceID?
    /// When the last finished call began, in milliseconds since 1970; nil: none since the start.
    package var triedMilliseconds: UInt64?
    package var outcome: Outcome?
    /// Why the call failed, in words; nil if it did not.
    package var reason: String?

    package init(address: String, source: Source, device: DeviceID? = nil) {
      self.address = address
      self.source = source
      self.device = device
    }

    /// Whether the last call met nobody.
    package var isUnreached: Bool { outcome != nil && outcome != .met }
  }
}
