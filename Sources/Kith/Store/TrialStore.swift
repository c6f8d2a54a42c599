package import KithCore

/// A store in memory that takes and refuses writes as a store of the account does at this moment:
/// to say what would happen without doing it.
///
/// It knows the limits and what is shown. Hidden writes of other devices, which room that is freed
/// may bring back, are beyond it.
package struct TrialStore: Sendable {
  private let policy: Policy
  private var sizes: [Key: Int] = [:]
  private var bytes = 0

  /// A store that shows nothing, under the standard limits.
  package init() { policy = .standard }

  /// A store that shows what another one does, under its limits.
  package init(values: [Key: PropertyListValue], usage: Usage) {
    policy = usage.policy
    sizes = values.compactMapValues { try? EncodedValue($0).size }
    bytes = sizes.values.reduce(0, +)
  }

  /// Takes writes that stand or fall together. Nil removes a key.
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `unsupportedValue` or
  ///   `quotaExceeded`; nothing has changed then.
  package mutating func write(
    _ writes: [(key: String, value: PropertyListValue?)]
  ) throws(KithError) {
    var operations: [KithCore.Operation] = []
    for write in writes { operations.append(try .encoding(write.value, forKey: write.key)) }
    try write(operations)
  }

  /// Takes writes that stand or fall together.
  ///
  /// - Throws: ``KithError`` as the other method does; nothing has changed then.
  /// - Complexity: O(*n*) in the operations.
  mutating func write(_ operations: [KithCore.Operation]) throws(KithError) {
    for operation in operations { try check(operation) }
    var numbers = QuotaNumbers(
      usedBytes: bytes, askedBytes: bytes, limitBytes: policy.totalBytes, usedKeys: sizes.count,
      askedKeys: sizes.count, limitKeys: policy.keys)
    var asked: [Key: Int?] = [:]
    for operation in operations {
      let key = Key(operation.key)
      let old = asked[key] ?? sizes[key]
      let new = operation.value?.size
      asked.updateValue(new, forKey: key)
      numbers.askedBytes += (new ?? 0) - (old ?? 0)
      numbers.askedKeys += (new == nil ? 0 : 1) - (old == nil ? 0 : 1)
    }
    let isWriting = operations.contains { $0.value != nil }
    let isFull =
      numbers.askedBytes > numbers.limitBytes || numbers.askedKeys > numbers.limitKeys
    guard !isWriting || !isFull else { throw KithError(WriteError.quotaExceeded(numbers)) }
    for (key, size) in asked { sizes[key] = size }
    bytes = numbers.askedBytes
  }

  private func check(_ operation: KithCore.Operation) throws(KithError) {
    let length = operation.key.utf8.count
    guard length > 0, length <= policy.keyBytes || operation.value == nil else {
      throw KithError(
        WriteError.invalidKey(key: operation.key, bytes: length, limit: policy.keyBytes))
    }
    guard let size = operation.value?.size, size > policy.valueBytes else { return }
    throw KithError(
      WriteError.valueTooLarge(key: operation.key, bytes: size, limit: policy.valueBytes))
  }
}
