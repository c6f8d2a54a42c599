public import KithCore
public import KithCrypto

/// A device's id: its Ed25519 public key.
public typealias DeviceID = KithCore.DeviceID
/// An account's id: the digest of its genesis record.
public typealias AccountID = KithCore.AccountID
/// Names a store of an account.
public typealias StoreIdentifier = KithCore.StoreIdentifier
/// A value of a store: what property lists can hold.
public typealias PropertyListValue = KithCore.PropertyListValue
/// The state of a node, its peers and its stores; `Docs/CommandLine.md` ("Status") explains each
/// member.
///
/// ```swift
/// for await status in accounts.statusUpdates {
///   for problem in status.problems { show(problem.message) }
/// }
/// ```
public typealias NodeStatus = KithCore.NodeStatus
/// The data of a store that was damaged on a disk and is missing, as ``NodeStatus`` tells of it.
public typealias StoreLoss = KithCore.StoreLoss
/// A person's or file's passphrase, in guarded memory.
public typealias Passphrase = KithCrypto.Passphrase

extension KeyValueStore {
  /// A key of a store, which compares as UTF-8 bytes.
  public typealias Key = KithCore.Key
  /// A store's limits.
  public typealias Policy = KithCore.Policy
  /// The bytes and keys that a store shows, and its limits.
  public typealias Usage = KithCore.Usage
  /// A newest write that the quota hides.
  public typealias HiddenEntry = KithCore.HiddenEntry
  /// A transaction that was accepted offline, but did not fit later.
  public typealias Refusal = KithCore.Refusal
  /// A value that a key showed before on this device.
  public typealias PastValue = KithCore.PastValue
  /// Why a store's shown values changed.
  public typealias ChangeReason = KithCore.ChangeReason
}
