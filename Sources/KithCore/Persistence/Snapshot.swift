package import KithCrypto

/// Names a stored change set. The digest tells the two sides of a fork apart.
package struct ChangeSetReference: Hashable, Sendable {
  package let device: DeviceID
  /// The author's database.
  package let incarnation: Incarnation
  package let sequence: UInt64
  /// BLAKE2b-256 of the header's bytes.
  package let digest: Digest256

  package init(device: DeviceID, incarnation: Incarnation, sequence: UInt64, digest: Digest256) {
    self.device = device
    self.incarnation = incarnation
    self.sequence = sequence
    self.digest = digest
  }

  package var chain: ChainID { ChainID(device: device, incarnation: incarnation) }

  /// Hashes the digest alone, which covers the rest.
  package func hash(into hasher: inout Hasher) { hasher.combine(digest) }

  /// The keys of its row and of those of its entries.
  package func keys(_ indices: [UInt32], in store: StoreIdentifier) -> [RowKey] {
    [.store(store, .changeSet(self))] + indices.map { .store(store, .entry(self, $0)) }
  }
}

/// The signed bytes, and the entries that still count.
package struct StoredChangeSet: Hashable, Sendable {
  /// Encoded, as signed. Empty if only entries are kept, as after damage.
  package var header: [UInt8]
  /// 64 bytes.
  package var signature: [UInt8]
  /// Sealed, by index, without superseded ones.
  package var entries: [UInt32: [UInt8]]

  package init(header: [UInt8], signature: [UInt8], entries: [UInt32: [UInt8]] = [:]) {
    self.header = header
    self.signature = signature
    self.entries = entries
  }
}

package struct StoredStore: Hashable, Sendable {
  package var policy: Policy
  /// The clock of the last adopted write that may still be in the local stores.
  package var adopted = HybridTime.zero
  /// Whether a program on this host opened it.
  package var isUsedHere = false
  package var vector: [ChainID: UInt64] = [:]
  /// The sequences covered when damage was found, of chains not covered so far again.
  package var lost: [ChainID: UInt64] = [:]
  /// Nil once all is covered again.
  package var loss: StoreLoss?
  package var horizon = Horizon()
  package var changeSets: [ChangeSetReference: StoredChangeSet] = [:]
  /// The drafts by number, as the core encodes them.
  package var drafts: [UInt64: [UInt8]] = [:]
  /// The refusals by number, encoded like drafts.
  package var refusals: [UInt64: [UInt8]] = [:]
  /// The past values by number, encoded like drafts.
  package var pastValues: [UInt64: [UInt8]] = [:]

  package init(policy: Policy = .standard) {
    self.policy = policy
  }
}

/// All persistent state of a replica: the rows, decoded as far as the core reads them at its start.
package struct Snapshot: Hashable, Sendable {
  package var clock: HybridTime = .zero
  /// Nil before the first start.
  package var incarnation: Incarnation?
  /// The run of the host in which change sets may have been sent before they were synced.
  package var earlySending: BootID?
  /// Whether past values are kept.
  package var keepsHistory = true
  /// Encoded, by the digest of their body.
  package var records: [Digest256: [UInt8]] = [:]
  package var addresses: [DeviceID: [String]] = [:]
  /// A store begins with its first row.
  package var stores: [StoreIdentifier: StoredStore] = [:]
  /// The core's notes of objects on carriers, in its encoding.
  package var carriers: [CarrierID: [ObjectName: [UInt8]]] = [:]

  package init() {}

  /// - Complexity: O(1), besides the mutation's own content.
  package mutating func apply(_ mutation: Mutation) {
    switch mutation {
    case .put(let key, let bytes): self[key] = bytes
    case .remove(let key): self[key] = nil
    }
  }

  /// A row's bytes; nil if there is no such row, as after a row that does not decode was set.
  package subscript(key: RowKey) -> [UInt8]? {
    get {
      switch key {
      case .clock: clock == .zero ? nil : clock.row
      case .incarnation: incarnation?.row
      case .earlySending: earlySending?.row
      case .keepsHistory: keepsHistory ? nil : [0]
      case .record(let digest): records[digest]
      case .addresses(let device): addresses[device].map(Contacts.row)
      case .object(let carrier, let name): carriers[carrier]?[name]
      case .store(let store, let key): stores[store]?[key]
      case .storage, .damaged: nil
      }
    }
    set {
      switch key {
      case .clock: clock = newValue.flatMap(HybridTime.init(row:)) ?? .zero
      case .incarnation:
        incarnation = newValue.flatMap(UInt64.init(row:)).map(Incarnation.init(rawValue:))
      case .earlySending: earlySending = newValue.flatMap(BootID.init(row:))
      case .keepsHistory: keepsHistory = newValue != [0]
      case .record(let digest): records[digest] = newValue
      case .addresses(let device): addresses[device] = newValue.flatMap(Contacts.addresses(row:))
      case .object(let carrier, let name):
        carriers[carrier, default: [:]][name] = newValue
        if carriers[carrier]?.isEmpty == true { carriers[carrier] = nil }
      case .store(let store, let key):
        guard newValue != nil || stores[store] != nil else { return }
        stores[store, default: StoredStore()][key] = newValue
      case .storage, .damaged: break
      }
    }
  }

  /// Puts all rows whose key fulfils a condition, in the order of the keys.
  package func mutations(where isPut: (RowKey) -> Bool) -> [Mutation] {
    var keys: [RowKey] = [.clock, .incarnation, .earlySending, .keepsHistory]
    keys += records.keys.sorted().map { .record($0) }
    keys += addresses.keys.sorted().map { .addresses($0) }
    for (carrier, objects) in carriers.sorted(by: { $0.key < $1.key }) {
      keys += objects.keys.sorted().map { .object(carrier, $0) }
    }
    for (store, stored) in stores.sorted(by: { $0.key < $1.key }) {
      keys += stored.keys.map { .store(store, $0) }
    }
    return keys.filter(isPut).compactMap { key in self[key].map { .put(key, $0) } }
  }

  /// The mutations that give another device the same data, besides the records. Drafts name no
  /// device: the device that publishes them is their author. Past values stay: the other device
  /// never showed them.
  package var forAnotherDevice: [Mutation] {
    mutations {
      switch $0 {
      case .incarnation, .earlySending, .record, .object, .store(_, .pastValue): false
      default: true
      }
    }
  }
}

extension StoredStore {
  fileprivate subscript(key: StoreRowKey) -> [UInt8]? {
    get {
      switch key {
      case .policy: policy.row
      case .adopted: adopted == .zero ? nil : adopted.row
      case .opened: isUsedHere ? [1] : nil
      case .vector(let chain): vector[chain]?.row
      case .lost(let chain): lost[chain]?.row
      case .loss: loss?.row
      case .horizon: horizon == Horizon() ? nil : horizon.row
      case .changeSet(let reference):
        changeSets[reference].flatMap { $0.header.isEmpty ? nil : $0.row }
      case .entry(let reference, let index): changeSets[reference]?.entries[index]
      case .draft(let number): drafts[number]
      case .refusal(let number): refusals[number]
      case .pastValue(let number): pastValues[number]
      }
    }
    set {
      switch key {
      case .policy: policy = newValue.flatMap(Policy.init(row:)) ?? .standard
      case .adopted: adopted = newValue.flatMap(HybridTime.init(row:)) ?? .zero
      case .opened: isUsedHere = newValue != nil
      case .vector(let chain): vector[chain] = newValue.flatMap(UInt64.init(row:))
      case .lost(let chain): lost[chain] = newValue.flatMap(UInt64.init(row:))
      case .loss: loss = newValue.flatMap(StoreLoss.init(row:))
      case .horizon: horizon = newValue.flatMap(Horizon.init(row:)) ?? Horizon()
      case .changeSet(let reference):
        let row = newValue.flatMap(StoredChangeSet.init(row:))
        change(reference) { ($0.header, $0.signature) = (row?.header ?? [], row?.signature ?? []) }
      case .entry(let reference, let index): change(reference) { $0.entries[index] = newValue }
      case .draft(let number): drafts[number] = newValue
      case .refusal(let number): refusals[number] = newValue
      case .pastValue(let number): pastValues[number] = newValue
      }
    }
  }

  private mutating func change(
    _ reference: ChangeSetReference, _ body: (inout StoredChangeSet) -> Void
  ) {
    body(&changeSets[reference, default: StoredChangeSet(header: [], signature: [])])
    if changeSets[reference]?.header.isEmpty == true, changeSets[reference]?.entries.isEmpty == true
    {
      changeSets[reference] = nil
    }
  }

  fileprivate var keys: [StoreRowKey] {
    var keys: [StoreRowKey] = [.policy, .adopted, .opened, .loss, .horizon]
    keys += vector.keys.sorted().map { .vector($0) } + lost.keys.sorted().map { .lost($0) }
    for (reference, changeSet) in changeSets.sorted(by: { $0.key < $1.key }) {
      keys.append(.changeSet(reference))
      keys += changeSet.entries.keys.sorted().map { .entry(reference, $0) }
    }
    return keys + drafts.keys.sorted().map { .draft($0) }
      + refusals.keys.sorted().map { .refusal($0) }
      + pastValues.keys.sorted().map { .pastValue($0) }
  }
}
