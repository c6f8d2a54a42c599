public import KithCore

/// A device's id: its Ed25519 public key.
public typealias DeviceID = KithCore.DeviceID
/// An account's id: the digest of its genesis record.
public typealias AccountID = KithCore.AccountID
/// Names a store of an account.
public typealias StoreIdentifier = KithCore.StoreIdentifier
/// A key of a store, which compares as UTF-8 bytes.
public typealias Key = KithCore.Key
/// A store's limits.
public typealias Policy = KithCore.Policy
/// A value of a store, of a type that property lists hold.
public typealias PropertyListValue = KithCore.PropertyListValue
/// A value in its only encoding.
public typealias EncodedValue = KithCore.EncodedValue
/// A store's use of its policy.
public typealias Usage = KithCore.Usage
/// What a node knows of itself, its peers and its stores.
public typealias NodeStatus = KithCore.NodeStatus
/// A newest write that the quota hides.
public typealias HiddenEntry = KithCore.HiddenEntry
/// A transaction that was accepted offline, but did not fit later.
public typealias Refusal = KithCore.Refusal
/// Why the values that a store shows changed.
public typealias ChangeReason = KithCore.ChangeReason
/// A hybrid logical clock's reading.
public typealias HybridTime = KithCore.HybridTime
/// The time and device of a write.
public typealias Stamp = KithCore.Stamp
/// The numbers of a quota refusal.
public typealias QuotaNumbers = KithCore.QuotaNumbers
