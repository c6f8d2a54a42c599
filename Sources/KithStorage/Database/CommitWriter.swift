import GRDB
import KithCore
import KithCrypto

/// Turns mutations into as few SQL statements as possible: each touched row may dirty a page, and
/// each dirty page is written before the commit counts. Each commit has a writer of its own.
struct CommitWriter {
  let database: Database
  let statements: Statements
  var index: RowIndex
  /// Not written yet, because its first entry may follow into the same row.
  private var pending: PendingHeader?
  /// Change sets that this commit will still remove, the last first. A new one reuses a row: one
  /// page instead of two, and no half-empty page to balance.
  private var doomed: [RowIndex.ChangeSetKey] = []
  /// Of removed change sets.
  private var freeRows: [Int64] = []
  /// Of removed drafts. The core removes replaced drafts before it puts the new one.
  var freeDraftRows: [Int64] = []
  /// Of removed past values. The core removes old ones before it puts new ones.
  var freePastValueRows: [Int64] = []
  var hasNewClock = false
  /// Whether this commit wrote the clock in a draft's row.
  var hasNewDraft = false

  private struct PendingHeader {
    var key: RowIndex.ChangeSetKey
    var header: [UInt8]
    var signature: [UInt8]
  }

  init(_ database: Database, statements: Statements, index: RowIndex) {
    self.database = database
    self.statements = statements
    self.index = index
  }

  mutating func apply(_ mutations: [Mutation], seal: borrowing RowSeal) throws {
    doomed = mutations.reversed().compactMap { mutation in
      guard case .removeChangeSet(let store, let reference) = mutation,
        let row = index.stores[store]
      else { return nil }
      return RowIndex.ChangeSetKey(store: row, reference: reference)
    }
    try beginClock(mutations)
    for mutation in mutations { try apply(mutation, seal: seal) }
    try writePending(with: nil)
    try finishClock()
    // Rows that nothing new reused.
    for row in freeRows { try statements.run("DELETE FROM change_set WHERE id = ?", .integer(row)) }
    for row in freeDraftRows { try statements.run("DELETE FROM draft WHERE id = ?", .integer(row)) }
    for row in freePastValueRows {
      try statements.run("DELETE FROM past_value WHERE id = ?", .integer(row))
    }
  }

  private mutating func apply(_ mutation: Mutation, seal: borrowing RowSeal) throws {
    switch mutation {
    case .setClock: break  // See `beginClock`.
    case .setIncarnation(let incarnation):
      try Meta.set(.incarnation, incarnation.rawValue.bigEndianBytes, statements)
    case .setKeepsHistory(let keepsHistory):
      try Meta.set(.keepsHistory, [keepsHistory ? 1 : 0], statements)
    case .putRecord(let digest, let record):
      try statements.put(
        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)",
        copy: "INSERT OR REPLACE INTO record_copy VALUES (?, ?, ?)", digest.bytes.blob, record.blob)
    case .removeRecord(let digest):
      try statements.run("DELETE FROM record WHERE digest = ?", digest.bytes.blob)
      try statements.run("DELETE FROM record_copy WHERE digest = ?", digest.bytes.blob)
    case .setAddresses(let device, let list): try setAddresses(device, list)
    case .putStore(let store, let policy):
      var facts = index.storeRows[store] ?? RowIndex.Store(policy: policy)
      facts.policy = policy
      try putStore(store, facts)
    case .setAdopted(let store, let clock):
      guard var facts = index.storeRows[store] else { return }
      facts.adopted = clock
      try putStore(store, facts)
    case .setOpened(let store):
      guard var facts = index.storeRows[store], !facts.isOpened else { return }
      facts.isOpened = true
      try putStore(store, facts)
    case .putHeader(let store, let reference, let header, let signature):
      try putHeader(store, reference, header, signature)
    case .removeChangeSet(let store, let reference): try removeChangeSet(store, reference)
    case .putEntry(let store, let reference, let index, let box):
      try putEntry(store, reference, index, box)
    case .removeEntry(let store, let reference, let index):
      try removeEntry(store, reference, index)
    case .setVector(let store, let device, let incarnation, let sequence):
      guard let row = index.stores[store] else { return }
      try setCounter(row, device.bytes, incarnation.rawValue, sequence)
    case .removeVector(let store, let device, let incarnation):
      guard let row = index.stores[store] else { return }
      try statements.run(
        "DELETE FROM counter WHERE store = ? AND device = ? AND incarnation = ?",
        .integer(row), device.bytes.blob, incarnation.rawValue.signed)
    case .setLost(let store, let device, let incarnation, let sequence):
      guard let row = index.stores[store] else { return }
      try statements.put(
        "INSERT OR REPLACE INTO lost VALUES (?, ?, ?, ?, ?)", .integer(row), device.bytes.blob,
        incarnation.rawValue.signed, sequence.signed)
    case .removeLost(let store, let device, let incarnation):
      guard let row = index.stores[store] else { return }
      try statements.run(
        "DELETE FROM lost WHERE store = ? AND device = ? AND incarnation = ?",
        .integer(row), device.bytes.blob, incarnation.rawValue.signed)
    case .setLoss(let store, let loss):
      guard let row = index.stores[store] else { return }
      try setLoss(row, loss)
    case .setHorizon(let store, let horizon):
      guard let row = index.stores[store] else { return }
      try statements.put(
        "INSERT OR REPLACE INTO horizon VALUES (?, ?, ?, ?, ?)", .integer(row),
        horizon.clock.rawValue.signed, .flag(horizon.isBelow),
        horizon.unseen.flatMap(\.bytes).blob)
    case .dropDamaged:
      try index.damaged.drop(database)
      index.damaged = DamagedRows()
    case .putDraft(let store, let ordinal, let draft): try putDraft(store, ordinal, draft, seal)
    case .removeDraft(let store, let ordinal): removeDraft(store, ordinal)
    case .putRefusal(let store, let number, let refusal):
      guard let row = index.stores[store] else { return }
      try statements.run(
        "INSERT OR REPLACE INTO refusal VALUES (?, ?, ?)",
        .integer(row), number.signed, seal.seal(refusal, at: .refusal(store, number)).blob)
    case .removeRefusal(let store, let number):
      guard let row = index.stores[store] else { return }
      try statements.run(
        "DELETE FROM refusal WHERE store = ? AND number = ?", .integer(row), number.signed)
    case .putPastValue(let store, let number, let value):
      try putPastValue(store, number, value, seal)
    case .removePastValue(let store, let number): removePastValue(store, number)
    case .putObject(let carrier, let name, let object):
      try statements.run(
        "INSERT OR REPLACE INTO object VALUES (?, ?, ?)", carrier.digest.bytes.blob,
        name.digest.bytes.blob, seal.seal(object, at: .object(carrier, name)).blob)
    case .removeObject(let carrier, let name):
      try statements.run(
        "DELETE FROM object WHERE carrier = ? AND name = ?", carrier.digest.bytes.blob,
        name.digest.bytes.blob)
    }
  }

  func setCounter(
    _ store: Int64, _ device: [UInt8], _ incarnation: UInt64, _ value: UInt64
  ) throws {
    try statements.put(
      """
      INSERT INTO counter VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (store, device, incarnation)
      DO UPDATE SET value = excluded.value, checksum = excluded.checksum
      """,
      .integer(store), device.blob, incarnation.signed, value.signed)
  }

  private func setLoss(_ store: Int64, _ loss: StoreLoss?) throws {
    guard let loss else {
      return try statements.run("DELETE FROM loss WHERE store = ?", .integer(store))
    }
    try statements.put(
      "INSERT OR REPLACE INTO loss VALUES (?, ?, ?, ?, ?)", .integer(store),
      .count(loss.changeSets), .count(loss.entries), .flag(loss.isAccepted))
  }

  private func setAddresses(_ device: DeviceID, _ list: [String]) throws {
    try statements.run("DELETE FROM address WHERE device = ?", device.bytes.blob)
    for (position, address) in list.enumerated() {
      try statements.put(
        "INSERT INTO address VALUES (?, ?, ?, ?)", device.bytes.blob, .count(position),
        .text(address))
    }
  }

  private mutating func putStore(_ store: StoreIdentifier, _ facts: RowIndex.Store) throws {
    let row = index.stores[store] ?? index.lastStore + 1
    let policy = facts.policy
    try statements.put(
      "INSERT OR REPLACE INTO store VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      copy: "INSERT OR REPLACE INTO store_copy VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      .integer(row), .text(store.rawValue), .count(policy.totalBytes), .count(policy.keys),
      .count(policy.keyBytes), .count(policy.valueBytes), facts.adopted.rawValue.signed,
      .flag(facts.isOpened))
    index.lastStore = max(index.lastStore, row)
    index.stores[store] = row
    index.storeRows[store] = facts
  }
}

extension CommitWriter {
  private mutating func putHeader(
    _ store: StoreIdentifier, _ reference: ChangeSetReference, _ header: [UInt8],
    _ signature: [UInt8]
  ) throws {
    guard let row = index.stores[store] else { return }
    try writePending(with: nil)
    let key = RowIndex.ChangeSetKey(store: row, reference: reference)
    if let slot = index.changeSets[key] {
      try statements.run(
        "UPDATE change_set SET header = ?, signature = ?, checksum = ? WHERE id = ?",
        header.blob, signature.blob,
        RowChecksum.of(reference, header: header, signature: signature),
        .integer(slot.id))
    } else {
      pending = PendingHeader(key: key, header: header, signature: signature)
    }
  }

  /// Writes the waiting header, if any, with its first entry, if that came.
  private mutating func writePending(with entry: (index: UInt32, box: [UInt8])?) throws {
    guard let header = pending else { return }
    pending = nil
    let slot = RowIndex.Slot(id: try takeRow(for: header.key), inlineIndex: entry?.index)
    let reference = header.key.reference
    try statements.run(
      "INSERT OR REPLACE INTO change_set VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      .integer(slot.id), .integer(header.key.store), .integer(header.key.store),
      reference.device.bytes.blob, reference.incarnation.rawValue.signed,
      reference.sequence.signed, reference.digest.bytes.blob,
      entry.map { .integer(Int64($0.index)) } ?? .null, header.header.blob, header.signature.blob,
      RowChecksum.of(reference, header: header.header, signature: header.signature),
      entry.map { RowChecksum.of(reference, index: $0.index, box: $0.box) } ?? .null,
      entry?.box.blob ?? .null)
    index.lastChangeSet = max(index.lastChangeSet, slot.id)
    index.changeSets[header.key] = slot
  }

  /// Returns a row of a change set that this commit removes, or a new one. No other mutation of the
  /// removed one has an effect, so its row is free at once.
  private mutating func takeRow(for key: RowIndex.ChangeSetKey) throws -> Int64 {
    if let row = freeRows.popLast() { return row }
    while let old = doomed.popLast() {
      guard old != key, let slot = index.changeSets.removeValue(forKey: old) else { continue }
      try deleteEntries(of: slot)
      return slot.id
    }
    return index.lastChangeSet + 1
  }

  private mutating func removeChangeSet(
    _ store: StoreIdentifier, _ reference: ChangeSetReference
  ) throws {
    guard let row = index.stores[store] else { return }
    let key = RowIndex.ChangeSetKey(store: row, reference: reference)
    if pending?.key == key { pending = nil }
    if doomed.last == key { doomed.removeLast() }
    guard let slot = index.changeSets.removeValue(forKey: key) else { return }
    freeRows.append(slot.id)
    try deleteEntries(of: slot)
  }

  private mutating func putEntry(
    _ store: StoreIdentifier, _ reference: ChangeSetReference, _ entry: UInt32, _ box: [UInt8]
  ) throws {
    guard let row = index.stores[store] else { return }
    let key = RowIndex.ChangeSetKey(store: row, reference: reference)
    if pending?.key == key { return try writePending(with: (entry, box)) }
    guard var slot = index.changeSets[key] else { return }
    if slot.inlineIndex == entry || (slot.inlineIndex == nil && !slot.hasMore) {
      try statements.run(
        "UPDATE change_set SET entry_index = ?, entry_checksum = ?, entry_box = ? WHERE id = ?",
        .integer(Int64(entry)), RowChecksum.of(reference, index: entry, box: box), box.blob,
        .integer(slot.id))
      slot.inlineIndex = entry
    } else {
      try statements.run(
        "INSERT OR REPLACE INTO entry VALUES ((?1 << 32) | ?2, ?1, ?3, ?4)", .integer(slot.id),
        .integer(Int64(entry)), RowChecksum.of(reference, index: entry, box: box), box.blob)
      slot.hasMore = true
    }
    index.changeSets[key] = slot
  }

  private mutating func removeEntry(
    _ store: StoreIdentifier, _ reference: ChangeSetReference, _ entry: UInt32
  ) throws {
    guard let row = index.stores[store] else { return }
    let key = RowIndex.ChangeSetKey(store: row, reference: reference)
    // An entry is deleted with its change set.
    guard pending?.key != key, doomed.last != key, let slot = index.changeSets[key] else { return }
    if slot.inlineIndex == entry {
      try statements.run(
        """
        UPDATE change_set SET entry_index = NULL, entry_checksum = NULL, entry_box = NULL
        WHERE id = ?
        """, .integer(slot.id))
      index.changeSets[key]?.inlineIndex = nil
    } else if slot.hasMore {
      try statements.run(
        "DELETE FROM entry WHERE id = (? << 32) | ?", .integer(slot.id), .integer(Int64(entry)))
    }
  }

  private func deleteEntries(of slot: RowIndex.Slot) throws {
    guard slot.hasMore else { return }
    try statements.run(
      "DELETE FROM entry WHERE id BETWEEN ?1 << 32 AND (?1 << 32) | 4294967295",
      .integer(slot.id))
  }
}
