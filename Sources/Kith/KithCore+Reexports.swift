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
/// A value of a store: what property lists can hold.
public typealias PropertyListValue = KithCore.PropertyListValue
/// A value in the one encoding that it has.
public typealias EncodedValue = KithCore.EncodedValue
/// What a store uses of its policy.
public typealias Usage = KithCore.Usage
/// What a replica knows of itself, its peers and its stores.
public typealias ReplicaStatus = KithCore.ReplicaStatus
/// A hybrid logical clock's reading.
public typealias HybridTime = KithCore.HybridTime
/// When an entry was written, and by which device.
public typealias Stamp = KithCore.Stamp
/// The numbers of a quota refusal.
public typealias QuotaNumbers = KithCore.QuotaNumbers
