public import FoundationEssentials
public import KithCrypto

extension NodeStatus {
  /// A device of an account, possibly revoked.
  public struct Device: Codable, Hashable, Sendable, Identifiable {
    /// The device's id.
    public var id: DeviceID
    /// The name that people see.
    public var name: String
    /// The fingerprint, which two people compare.
    public var fingerprint: String
    /// Whether it is the device that answers.
    public var isThisDevice = false
    /// Whether it is a member now.
    public var isMember = true
    /// Whether this device has a session with it now.
    public var isConnected = false
    /// When it was certified, in milliseconds since 1970, by its own clock.
    package var enrolledMilliseconds: UInt64 = 0
    /// The one that made it a member; nil if no such signature counts any more.
    package var enroller: Enroller?
    /// How it was revoked; nil if it was not.
    package var revocation: Revocation?
    /// When it was last seen since the node was opened, in milliseconds since 1970; nil if never.
    package var lastSeenMilliseconds: UInt64?
    /// Whether this device received anything of it, directly or through others, since it became a
    /// member.
    ///
    /// If not, joining may have broken off.
    public var wasSeen = true
    /// How many change sets this device has that the other is not known to have, by store.
    ///
    /// 0 means up to date. Stores that the other did not tell about are left out. Empty for this
    /// device.
    public var behind: [StoreIdentifier: UInt64] = [:]
    /// Since when it lacks something that it still lacks, as far as this node looked, in milliseconds
    /// since 1970; nil if it is up to date. A device of which nothing is known lacks all.
    package var behindSinceMilliseconds: UInt64?
    /// This device's stores that the other does not accept: it has as many as a device keeps.
    package var storesRejectedThere: [StoreIdentifier] = []
    /// The other's stores that this device does not accept, for the same reason.
    package var storesRejectedHere: [StoreIdentifier] = []
    /// Its version of Kith; nil if not met since the node was opened.
    package var software: String?
    /// Its clock less this device's at the last handshake since the node was opened, in
    /// milliseconds.
    package var clockOffsetMilliseconds: Int64?
    /// The addresses at which it may be met.
    package var addresses: [String] = []

    /// When it was certified, by its own clock.
    public var enrolled: Date { Date(milliseconds: enrolledMilliseconds) }
    /// When it was last seen since the node was opened; nil if never.
    public var lastSeen: Date? { lastSeenMilliseconds.map(Date.init(milliseconds:)) }

    package init(id: DeviceID, name: String) {
      self.id = id
      self.name = name
      fingerprint = Fingerprint(of: id).description
    }
  }

  /// The one that made a device a member.
  ///
  /// It is encoded as `creation`, `recoveryKey` or a device's id.
  package enum Enroller: Codable, Hashable, Sendable {
    /// The device created the account.
    case creation
    /// The recovery key.
    case recoveryKey
    /// Another device, which may have been revoked since.
    case device(DeviceID)

    /// Decodes the text.
    package init(from decoder: any Decoder) throws {
      switch try decoder.singleValueContainer().decode(String.self) {
      case "creation": self = .creation
      case "recoveryKey": self = .recoveryKey
      default: self = .device(try DeviceID(from: decoder))
      }
    }

    /// Encodes the text.
    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .creation: try container.encode("creation")
      case .recoveryKey: try container.encode("recoveryKey")
      case .device(let id): try container.encode(id)
      }
    }
  }

  /// How a device was revoked.
  package struct Revocation: Codable, Hashable, Sendable {
    /// The devices that revoked it; several if they signed one record.
    package var revokers: [DeviceID]
    /// When, in milliseconds since 1970, by the revoker's clock.
    package var milliseconds: UInt64
  }
}
