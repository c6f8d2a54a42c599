internal import KithCrypto

/// A kept change set. Header, signature and boxes are read from storage on sending.
struct KeptChangeSet: Hashable, Sendable {
  /// A sealed entry that still counts.
  private struct Box: Hashable {
    var index: UInt32
    var bytes: UInt32
  }

  let reference: ChangeSetReference
  let clock: HybridTime
  private let headerBytes: Int
  /// The entries that still count, ascending by index.
  private var boxes: [Box]
  /// Bytes with overhead, counted against its author.
  private(set) var weight: Int

  init(_ changeSet: ChangeSet) {
    reference = changeSet.reference
    clock = changeSet.header.clock
    headerBytes = changeSet.stored.header.count
    boxes = changeSet.stored.entries.map { Box(index: $0.key, bytes: UInt32($0.value.count)) }
      .sorted { $0.index < $1.index }
    weight = changeSet.weight
  }

  var chain: ChainID { reference.chain }

  /// About how many bytes it takes in a message.
  var byteCount: Int { boxes.reduce(headerBytes + 80) { $0 + Int($1.bytes) + 12 } }

  var sequence: UInt64 { reference.sequence }

  var isEmpty: Bool { boxes.isEmpty }

  /// The indices of the entries that still count, ascending.
  var indices: [UInt32] { boxes.map(\.index) }

  /// - Complexity: O(log *n*) in the entries left.
  func holds(_ index: UInt32) -> Bool { position(of: index).isThere }

  /// Returns whether the entry was there.
  mutating func drop(_ index: UInt32) -> Bool {
    let (position, isThere) = position(of: index)
    guard isThere else { return false }
    weight -= Int(boxes.remove(at: position).bytes) + Limits.overheadBytes
    return true
  }

  mutating func restore(_ index: UInt32, bytes: Int) {
    let (position, isThere) = position(of: index)
    guard !isThere else { return }
    boxes.insert(Box(index: index, bytes: UInt32(bytes)), at: position)
    weight += bytes + Limits.overheadBytes
  }

  private func position(of index: UInt32) -> (position: Int, isThere: Bool) {
    var (low, high) = (boxes.startIndex, boxes.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if boxes[middle].index < index { low = middle + 1 } else { high = middle }
    }
    return (low, low < boxes.endIndex && boxes[low].index == index)
  }
}
