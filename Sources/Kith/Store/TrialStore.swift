package import KithCore

/// A store in memory that predicts whether a real one would accept writes.
///
/// It knows the limits and the shown values, but not hidden writes, which a removal may show again.
package struct TrialStore: Sendable {
  private let policy: Policy
  private var sizes: [Key: Int] = [:]
  private var bytes = 0

  package init() { policy = .standard }

  package init(values: [Key: PropertyListValue], usage: Usage) {
    policy = usage.policy
    sizes = values.compactMapValues { try? EncodedValue($0).size }
    bytes = sizes.values.reduce(0, +)
  }

  /// Accepts or refuses all writes together; nil removes a key.
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `unsupportedValue` or
  ///   `quotaExceeded`; then nothing has changed.
  package mutating func write(
    _ writes: [(key: String, value: PropertyListValue?)]
  ) throws(KithError) {
    try write([KithCore.Operation].encoding(writes))
  }

  /// Accepts or refuses each transaction alone. Returns the error of each.
  package mutating func write(
    each transactions: [[(key: String, value: PropertyListValue?)]]
  ) -> [KithError?] {
    var outcomes: [KithError?] = []
    for writes in transactions {
      do throws(KithError) {
        try write(writes)
        outcomes.append(nil)
      } catch {
        outcomes.append(error)
      }
    }
    return outcomes
  }

  mutating func write(_ operations: [KithCore.Operation]) throws(KithError) {
    do throws(WriteError) {
      for operation in operations { try policy.check(operation) }
    } catch {
      throw KithError(error)
    }
    let isWriting = operations.contains { $0.value != nil }
    let operations = operations.joined
    var numbers = QuotaNumbers(
      askedBytes: bytes, limitBytes: policy.totalBytes, askedKeys: sizes.count,
      limitKeys: policy.keys)
    for operation in operations {
      let (old, new) = (sizes[Key(operation.key)], operation.value?.size)
      numbers.askedBytes += (new ?? 0) - (old ?? 0)
      numbers.askedKeys += (new == nil ? 0 : 1) - (old == nil ? 0 : 1)
    }
    let isFull =
      numbers.askedBytes > numbers.limitBytes || numbers.askedKeys > numbers.limitKeys
    guard !isWriting || !isFull else { throw KithError(.quotaExceeded(numbers), of: operations) }
    for operation in operations { sizes[Key(operation.key)] = operation.value?.size }
    bytes = numbers.askedBytes
  }
}
