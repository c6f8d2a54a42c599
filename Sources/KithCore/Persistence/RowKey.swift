package import KithCrypto

/// Names a row of the persistent state. The types that a row holds encode its bytes.
package enum RowKey: Hashable, Sendable {
  case clock
  case incarnation
  /// The run of the host in which change sets may have been sent before they were synced.
  case earlySending
  /// Whether past values are kept.
  case keepsHistory
  /// A record, by the digest of its body.
  case record(Digest256)
  case addresses(DeviceID)
  /// The core's note of an object on a carrier. If it is damaged, the object is read again.
  case object(CarrierID, ObjectName)
  case store(StoreIdentifier, StoreRowKey)
  /// A row of the storage itself, which the core never sees.
  case storage(StorageRowKey)
  /// All rows that the last outline left out as damaged: they can only be removed.
  case damaged

  package var store: StoreIdentifier? {
    if case .store(let store, _) = self { store } else { nil }
  }
}

/// Names a row of a store.
package enum StoreRowKey: Hashable, Sendable {
  case policy
  /// The clock of the last adopted write that may still be in the local stores.
  case adopted
  /// Whether a program on this host opened it.
  case opened
  /// The sequence up to which a chain is covered.
  case vector(ChainID)
  /// The sequence up to which a chain was covered when damage was found.
  case lost(ChainID)
  case loss
  case horizon
  /// The header and signature of a change set.
  case changeSet(ChangeSetReference)
  /// A sealed entry of a change set, by its index.
  case entry(ChangeSetReference, UInt32)
  /// A draft, by the number of its row.
  case draft(UInt64)
  /// A refusal, by its number.
  case refusal(UInt64)
  /// A past value, by its number.
  case pastValue(UInt64)
}

/// Names a row of the storage itself.
package enum StorageRowKey: UInt8, Sendable {
  /// The identity of the database's file.
  case fileIdentity = 1
  /// The present and the next generation of the database.
  case generations = 2
  /// The carriers that only this device uses.
  case carriers = 3
}

/// One change of the persistent state. Of several changes of a row in one commit the last counts.
package enum Mutation: Hashable, Sendable {
  case put(RowKey, [UInt8])
  case remove(RowKey)

  package var key: RowKey {
    switch self {
    case .put(let key, _), .remove(let key): key
    }
  }
}

// MARK: - Bytes

extension RowKey {
  fileprivate enum Kind: UInt8 {
    case clock = 1
    case incarnation, keepsHistory, record, addresses, object, storage, damaged, earlySending
    case policy = 32
    case adopted, opened, vector, lost, loss, horizon, changeSet, entry, draft, refusal, pastValue
  }

  /// Its kind, the store's identifier after its length, then the parts, all of fixed length.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    // An identifier has at most 255 bytes; most have about 30.
    bytes.reserveCapacity(128)
    switch self {
    case .clock: bytes.append(Kind.clock.rawValue)
    case .incarnation: bytes.append(Kind.incarnation.rawValue)
    case .earlySending: bytes.append(Kind.earlySending.rawValue)
    case .keepsHistory: bytes.append(Kind.keepsHistory.rawValue)
    case .record(let digest):
      bytes.append(Kind.record.rawValue)
      bytes.append(contentsOf: digest)
    case .addresses(let device):
      bytes.append(Kind.addresses.rawValue)
      bytes.append(contentsOf: device)
    case .object(let carrier, let name):
      bytes.append(Kind.object.rawValue)
      bytes.append(contentsOf: carrier.digest)
      bytes.append(contentsOf: name.digest)
    case .store(let store, let key): key.append(to: &bytes, store)
    case .storage(let key): bytes += [Kind.storage.rawValue, key.rawValue]
    case .damaged: bytes.append(Kind.damaged.rawValue)
    }
    return bytes
  }

  /// Reads the key with which bytes begin, and leaves the rest; nil if there is none.
  package init?(removingFrom bytes: inout ArraySlice<UInt8>) {
    guard let kind = bytes.popFirst().flatMap(Kind.init) else { return nil }
    var rest = RowBytes(bytes)
    defer { bytes = rest.left }
    switch kind {
    case .clock: self = .clock
    case .incarnation: self = .incarnation
    case .earlySending: self = .earlySending
    case .keepsHistory: self = .keepsHistory
    case .record: self = .record(rest.read())
    case .addresses: self = .addresses(rest.read())
    case .object: self = .object(CarrierID(rest.read()), ObjectName(rest.read()))
    case .storage:
      guard let key = StorageRowKey(rawValue: UInt8(rest.number(bytes: 1))) else { return nil }
      self = .storage(key)
    case .damaged: return nil
    default:
      let length = Int(rest.number(bytes: 1))
      guard let text = String(validating: rest.left.prefix(length), as: UTF8.self),
        text.utf8.count == length, let store = StoreIdentifier(text)
      else { return nil }
      rest.left = rest.left.dropFirst(length)
      self = .store(store, StoreRowKey(kind, &rest))
    }
    guard !rest.isShort else { return nil }
  }
}

extension StoreRowKey {
  fileprivate func append(to bytes: inout [UInt8], _ store: StoreIdentifier) {
    let kind: RowKey.Kind =
      switch self {
      case .policy: .policy
      case .adopted: .adopted
      case .opened: .opened
      case .vector: .vector
      case .lost: .lost
      case .loss: .loss
      case .horizon: .horizon
      case .changeSet: .changeSet
      case .entry: .entry
      case .draft: .draft
      case .refusal: .refusal
      case .pastValue: .pastValue
      }
    bytes.append(kind.rawValue)
    bytes.append(UInt8(store.rawValue.utf8.count))
    bytes.append(contentsOf: store.rawValue.utf8)
    switch self {
    case .policy, .adopted, .opened, .loss, .horizon: break
    case .vector(let chain), .lost(let chain): bytes.append(chain)
    case .changeSet(let reference): bytes.append(reference)
    case .entry(let reference, let index):
      bytes.append(reference)
      bytes.append(number: index)
    case .draft(let number), .refusal(let number), .pastValue(let number):
      bytes.append(number: number)
    }
  }

  fileprivate init(_ kind: RowKey.Kind, _ rest: inout RowBytes) {
    switch kind {
    case .adopted: self = .adopted
    case .opened: self = .opened
    case .vector: self = .vector(ChainID(&rest))
    case .lost: self = .lost(ChainID(&rest))
    case .loss: self = .loss
    case .horizon: self = .horizon
    case .changeSet: self = .changeSet(ChangeSetReference(&rest))
    case .entry: self = .entry(ChangeSetReference(&rest), UInt32(rest.number(bytes: 4)))
    case .draft: self = .draft(rest.number(bytes: 8))
    case .refusal: self = .refusal(rest.number(bytes: 8))
    case .pastValue: self = .pastValue(rest.number(bytes: 8))
    case .policy, .clock, .incarnation, .earlySending, .keepsHistory, .record, .addresses, .object,
      .storage, .damaged:
      self = .policy
    }
  }
}

extension ChainID {
  fileprivate init(_ rest: inout RowBytes) {
    self.init(device: rest.read(), incarnation: Incarnation(rawValue: rest.number(bytes: 8)))
  }
}

extension ChangeSetReference {
  fileprivate init(_ rest: inout RowBytes) {
    let chain = ChainID(&rest)
    self.init(
      device: chain.device, incarnation: chain.incarnation, sequence: rest.number(bytes: 8),
      digest: rest.read())
  }
}

extension [UInt8] {
  fileprivate mutating func append(contentsOf value: some FixedBytes) {
    Swift.withUnsafeBytes(of: value.storage) { append(contentsOf: $0) }
  }

  /// Big-endian.
  fileprivate mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  fileprivate mutating func append(_ chain: ChainID) {
    append(contentsOf: chain.device)
    append(number: chain.incarnation.rawValue)
  }

  fileprivate mutating func append(_ reference: ChangeSetReference) {
    append(reference.chain)
    append(number: reference.sequence)
    append(contentsOf: reference.digest)
  }
}

/// Reads parts of fixed length in place. After too few bytes the values are zero, and ``isShort``
/// is true.
struct RowBytes {
  var left: ArraySlice<UInt8>
  private(set) var isShort = false

  init(_ bytes: ArraySlice<UInt8>) { left = bytes }

  init(_ bytes: [UInt8]) { left = bytes[...] }

  /// Big-endian.
  mutating func number(bytes count: Int) -> UInt64 {
    next(count).withUnsafeBytes { $0.reduce(0) { $0 << 8 | UInt64($1) } }
  }

  mutating func read<Value: FixedBytes>(_: Value.Type = Value.self) -> Value {
    next(Value.byteCount).withUnsafeBytes { bytes in
      Value(storage: bytes.isEmpty ? .init() : bytes.loadUnaligned(as: Value.Storage.self))
    }
  }

  /// The next bytes; none if there are too few.
  private mutating func next(_ count: Int) -> ArraySlice<UInt8> {
    guard left.count >= count else {
      isShort = true
      return []
    }
    defer { left = left.dropFirst(count) }
    return left.prefix(count)
  }

  /// Whether the bytes were neither too few nor too many.
  var isExact: Bool { !isShort && left.isEmpty }
}

extension UInt64 {
  /// Big-endian.
  package var row: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }

  /// Nil unless there are eight bytes. Inlinable: storage reads one for each row.
  @inlinable
  package init?(row: some Collection<UInt8>) {
    guard row.count == 8 else { return nil }
    self = row.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension HybridTime {
  package var row: [UInt8] { rawValue.row }

  package init?(row: [UInt8]) {
    guard let number = UInt64(row: row) else { return nil }
    self.init(rawValue: number)
  }
}

extension Incarnation {
  package var row: [UInt8] { rawValue.row }
}
