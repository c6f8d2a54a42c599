public import KithCore
public import KithCrypto

/// A device that is one of an account's, or was one until it was revoked.
public struct AccountDevice: Sendable, Hashable {
  /// Who made a device a member.
  public enum Enroller: Sendable, Hashable {
    /// It created the account.
    case creation
    /// The recovery key.
    case recoveryKey
    /// Another device, which may have been revoked since.
    case device(DeviceID)
  }

  /// How a device was thrown out.
  public struct Revocation: Sendable, Hashable {
    /// The devices that revoked it; more than one where several did it under one record.
    public var revokers: [DeviceID]
    /// When, in milliseconds since 1970, by the revoker's clock.
    public var milliseconds: UInt64
  }

  /// The device.
  public var id: DeviceID
  /// What people call it.
  public var name: String
  /// What two people compare by eye or voice.
  public var fingerprint: String
  /// Whether it is the device that answers.
  public var isThisDevice: Bool
  /// When it was certified, in milliseconds since 1970, by its own clock.
  public var enrolledMilliseconds: UInt64
  /// Who made it a member; nil where nobody's signature counts any more.
  public var enroller: Enroller?
  /// How it was revoked; nil for a member.
  public var revocation: Revocation?
  /// When it was met last since the node was opened, in milliseconds since 1970; nil where it was not.
  public var lastSeenMilliseconds: UInt64?
  /// Whether anything was ever heard of it since it became a member: from itself, or from others that
  /// met it. One that never was may have died on its way into the account.
  public var wasHeard: Bool
  /// Whether there is a session with it now.
  public var isConnected: Bool
  /// Of every store of which something was heard from it: how many of the change sets that this device
  /// has it is not known to have; 0 is up to date. Empty for this device.
  public var behind: [StoreIdentifier: UInt64]
  /// Its version of Kith, where it was met since the node was opened and said so.
  public var software: String?
  /// Its clock less this device's, in milliseconds, when it was met last since the node was opened.
  public var clockOffsetMilliseconds: Int64?

  /// Whether it is one of the account's now.
  public var isMember: Bool { revocation == nil && enroller != nil }
}
