/// The accepted connections with an unfinished handshake, limited in all and by address.
///
/// If full, the oldest connection without a valid first message is closed. Hostile connections push
/// each other out; a dialler with the account's key stays.
struct HalfOpenTable {
  enum Admission: Equatable {
    case admitted
    /// The connection to close, already removed.
    case admittedInsteadOf(UInt64)
    /// All have a valid first message.
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

  /// - Complexity: O(*n*) in the table's few connections.
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

  /// Called when the first message is authentic: the connection stays.
  mutating func markValid(_ id: UInt64) {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
    connections[index].hasValidFirstMessage = true
  }

  mutating func remove(_ id: UInt64) {
    connections.removeAll { $0.id == id }
  }
}
