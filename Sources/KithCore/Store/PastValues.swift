/// The history of a store: the values that its keys showed before on this device, and how storage
/// differs from it.
///
/// Numbers rise; a store's oldest values go first. Once the mutations of ``save(in:at:)`` are
/// committed, storage holds exactly these values.
struct PastValues {
  private var values: [UInt64: PastValue] = [:]
  /// The numbers of each key's values, ascending.
  private var numbers: [Key: [UInt64]] = [:]
  /// All numbers, ascending; also of dropped values, except at the start.
  private var order: ArraySlice<UInt64> = []
  private(set) var bytes = 0
  /// The number of the value that is added next.
  private(set) var next: UInt64 = 1
  /// Storage has no value from this number on.
  private var nextToSave: UInt64 = 1
  /// Dropped values that storage still has.
  private var unsavedDrops: [UInt64] = []

  // MARK: Reading

  var count: Int { values.count }

  /// Ascending by number.
  ///
  /// - Complexity: O(*n*).
  var all: [PastValue] { order.compactMap { values[$0] } }

  func contains(_ key: Key) -> Bool { numbers[key] != nil }

  /// The values of a key, or of all, newest first, without expired ones.
  func newest(_ limit: Int, of key: Key?, at milliseconds: UInt64) -> [PastValue] {
    let known = key.map { numbers[$0] ?? [] } ?? Array(order)
    return Array(
      known.reversed().lazy.compactMap { values[$0] }
        .filter { !$0.isExpired(at: milliseconds) }.prefix(max(0, limit)))
  }

  /// The values to show again, without expired ones; empty: none are kept.
  func values(for undo: Undo, at milliseconds: UInt64) -> [PastValue] {
    switch undo {
    case .key(let key, let number):
      let known = newest(.max, of: Key(key), at: milliseconds)
      return known.first { number == nil || $0.number == number }.map { [$0] } ?? []
    case .transaction(let number):
      return all.filter { $0.transaction == number && !$0.isExpired(at: milliseconds) }
    }
  }

  /// Whether a value is to be dropped for its age. Values after one that a wrong clock dated too
  /// late wait for it.
  ///
  /// - Complexity: O(1).
  func hasExpired(at milliseconds: UInt64) -> Bool {
    order.first.flatMap { values[$0] }?.isExpired(at: milliseconds) == true
  }

  // MARK: Changing

  /// Keeps a value that a key ceased to show; nil: the key was missing. `transaction` is the number of
  /// the first value that ended with it; nil: it is that. Above
  /// ``Limits/pastValuesPerKey``, drops the key's oldest value, and above `limit` bytes, the
  /// store's, but never the new one.
  ///
  /// - Complexity: O(1) amortised, besides the dropped values.
  mutating func add(
    _ shown: EncodedValue?, of key: Key, endedBy: DeviceID?, at milliseconds: UInt64, limit: Int,
    transaction: UInt64? = nil
  ) {
    insert(
      PastValue(
        number: next, transaction: transaction ?? next, key: key, shown: shown,
        endedMilliseconds: milliseconds, endedBy: endedBy))
    if numbers[key]?.count ?? 0 > Limits.pastValuesPerKey, let oldest = numbers[key]?.first {
      drop(oldest)
    }
    while bytes > limit, values.count > 1 { dropOldest() }
    if order.count > 2 * values.count + Limits.pastValuesPerKey {
      order = ArraySlice(order.filter { values[$0] != nil })
    }
  }

  private mutating func insert(_ value: PastValue) {
    values[value.number] = value
    numbers[value.key, default: []].append(value.number)
    order.append(value.number)
    bytes += value.keptBytes
    next = value.number + 1
  }

  private mutating func dropOldest() {
    if let number = order.first { drop(number) }
  }

  /// Drops the oldest value of its key.
  private mutating func drop(_ number: UInt64) {
    guard let value = values.removeValue(forKey: number) else { return }
    numbers[value.key]?.removeFirst()
    if numbers[value.key]?.isEmpty == true { numbers[value.key] = nil }
    bytes -= value.keptBytes
    if number < nextToSave { unsavedDrops.append(number) }
    while let first = order.first, values[first] == nil { order.removeFirst() }
  }

  // MARK: Storage

  /// Drops what has expired first.
  mutating func save(in store: StoreIdentifier, at milliseconds: UInt64) -> [Mutation] {
    while hasExpired(at: milliseconds) { dropOldest() }
    let added = order.suffix(while: { $0 >= nextToSave }).compactMap { values[$0] }
    defer { (nextToSave, unsavedDrops) = (next, []) }
    return unsavedDrops.map { .remove(.store(store, .pastValue($0))) }
      + added.map { .put(.store(store, .pastValue($0.number)), $0.encoded()) }
  }

  mutating func removeAll(in store: StoreIdentifier) -> [Mutation] {
    while !values.isEmpty { dropOldest() }
    defer { unsavedDrops = [] }
    return unsavedDrops.map { .remove(.store(store, .pastValue($0))) }
  }

  /// Adds a value from storage; called in order of numbers.
  mutating func restore(_ value: PastValue) {
    insert(value)
    nextToSave = next
  }
}

extension ArraySlice {
  /// The longest end whose elements all satisfy a condition.
  fileprivate func suffix(while condition: (Element) -> Bool) -> ArraySlice {
    self[(lastIndex { !condition($0) }.map { $0 + 1 } ?? startIndex)...]
  }
}
