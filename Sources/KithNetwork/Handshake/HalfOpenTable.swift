/// The accepted connections with an unfinished handshake, limited in all and by address.
///
/// If full, one makes way, so that nobody keeps others out for long:
/// - Connections without a valid first message make way for each other once they hold a quarter of the
///   places. So hostile strangers push each other out, and a dialler with the account's key stays.
/// - Otherwise one with a valid first message makes way: a member, or a revoked device with an old key,
///   can hold any number of them until their timeout.
///
/// In both cases it is the oldest of the address with the most of them. Honest diallers hold few.
struct HalfOpenTable {
  enum Admission: Equatable {
    case admitted
    /// The connection to close, already removed.
    case admittedInsteadOf(UInt64)
  }

  private struct Connection {
    var id: UInt64
    var bucket: AddressBucket
    var hasValidFirstMessage = false
  }

  private let limit: Int
  private let limitPerAddress: Int
  /// The oldest first.
  private var connections: [Connection] = []

  init(limit: Int, limitPerAddress: Int) {
    self.limit = limit
    self.limitPerAddress = limitPerAddress
  }

  var count: Int { connections.count }

  /// - Complexity: O(*n*) in the table's few connections.
  mutating func admit(_ id: UInt64, from bucket: AddressBucket) -> Admission {
    let isAddressFull = connections.count { $0.bucket == bucket } >= limitPerAddress
    guard isAddressFull || connections.count >= limit else {
      connections.append(Connection(id: id, bucket: bucket))
      return .admitted
    }
    let places = isAddressFull ? limitPerAddress : limit
    let rivals = connections.filter { !isAddressFull || $0.bucket == bucket }
    let strangers = rivals.filter { !$0.hasValidFirstMessage }
    let isQuarter = strangers.count * 4 >= places
    let leaves = oldest(
      of: isQuarter ? strangers : rivals.filter(\.hasValidFirstMessage), beside: bucket)
    remove(leaves)
    connections.append(Connection(id: id, bucket: bucket))
    return .admittedInsteadOf(leaves)
  }

  /// The oldest connection of the address with the most, counting the new one.
  private func oldest(of rivals: [Connection], beside bucket: AddressBucket) -> UInt64 {
    var counts = [bucket: 1]
    for rival in rivals { counts[rival.bucket, default: 0] += 1 }
    let most = rivals.lazy.map { counts[$0.bucket] ?? 0 }.max()
    return rivals.first { counts[$0.bucket] == most }?.id ?? connections[0].id
  }

  /// Called when the first message is authentic: the connection stays.
  mutating func markValid(_ id: UInt64) {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
    connections[index].hasValidFirstMessage = true
  }

  mutating func remove(_ id: UInt64) {
    connections.removeAll { $0.id == id }
  }
}
