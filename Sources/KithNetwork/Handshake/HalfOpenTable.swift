/// The accepted connections with an unfinished handshake, limited in all and by address.
///
/// If full, the oldest connection without a valid first message is closed. So hostile connections
/// push each other out, and a dialler with the account's key stays.
struct HalfOpenTable {
  /// The result for a new connection.
  enum Admission: Equatable {
    /// The table has space.
    case admitted
    /// The table has space once this connection is closed; it was removed from the table.
    case admittedInsteadOf(UInt64)
    /// The table is full, because all have a valid first message.
    case refused
  }

  private struct Connection {
    var id: UInt64
    var bucket: AddressBucket
    var hasValidFirstMessage = false
  }

  private let limit: Int
  private let limitPerAddress: Int
  /// The connections, the oldest first.
  private var connections: [Connection] = []

  init(limit: Int, limitPerAddress: Int) {
    self.limit = limit
    self.limitPerAddress = limitPerAddress
  }

  var count: Int { connections.count }

  /// Adds a connection.
  ///
  /// - Complexity: O(*n*) in the connections of the table, whose number is small.
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

  /// Marks a connection whose first message was authenticated: it is no longer closed for others.
  mutating func markValid(_ id: UInt64) {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
    connections[index].hasValidFirstMessage = true
  }

  /// Removes a connection that was closed, or whose handshake is finished.
  mutating func remove(_ id: UInt64) {
    connections.removeAll { $0.id == id }
  }
}
