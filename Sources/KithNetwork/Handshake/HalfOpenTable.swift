/// The accepted connections whose handshake is not done, in all and per address.
///
/// When there is no room, the oldest without a valid first message makes way: hostile connections
/// push each other out, and whoever holds the account's key stays.
struct HalfOpenTable {
  /// What becomes of a new connection.
  enum Admission: Equatable {
    /// There is room.
    case admitted
    /// There is room once this one is closed; it is out of the table already.
    case admittedInsteadOf(UInt64)
    /// All of them have a valid first message.
    case refused
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

  /// Takes in a connection.
  ///
  /// - Complexity: O(*n*) in the connections of the table, which are few.
  mutating func admit(_ id: UInt64, from bucket: AddressBucket) -> Admission {
    let isAddressFull = connections.count { $0.bucket == bucket } >= limitPerAddress
    guard isAddressFull || connections.count >= limit else {
      connections.append(Connection(id: id, bucket: bucket))
      return .admitted
    }
    let index = connections.firstIndex { connection in
      !connection.hasValidFirstMessage && (!isAddressFull || connection.bucket == bucket)
    }
    guard let index else { return .refused }
    let evicted = connections.remove(at: index).id
    connections.append(Connection(id: id, bucket: bucket))
    return .admittedInsteadOf(evicted)
  }

  /// A connection's first message authenticated: it is not closed to make room any more.
  mutating func markValid(_ id: UInt64) {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
    connections[index].hasValidFirstMessage = true
  }

  /// A connection's handshake is done, or it is closed.
  mutating func remove(_ id: UInt64) {
    connections.removeAll { $0.id == id }
  }
}
