internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// Limits half-open connections. Shared by all listeners of one transport or invitation.
final class Gate: Sendable {
  private struct State {
    var table: HalfOpenTable
    var answered = AnsweredEphemerals()
    var channels: [UInt64: any Channel] = [:]
    var lastID: UInt64 = 0
  }

  private let state: Mutex<State>

  init(limit: Int, limitPerAddress: Int) {
    state = Mutex(State(table: HalfOpenTable(limit: limit, limitPerAddress: limitPerAddress)))
  }

  var halfOpen: Int { state.withLock { $0.table.count } }

  /// Adds an accepted connection until it closes or its handshake is finished. If full, closes
  /// another.
  func admit(_ channel: any Channel) -> (id: UInt64, evicted: Bool) {
    let bucket = AddressBucket(channel.remoteAddress)
    let (id, evicted) = state.withLock { state -> (UInt64, (any Channel)?) in
      state.lastID += 1
      let id = state.lastID
      state.channels[id] = channel
      switch state.table.admit(id, from: bucket) {
      case .admitted: return (id, nil)
      case .admittedInsteadOf(let other): return (id, state.channels.removeValue(forKey: other))
      }
    }
    evicted?.close(promise: nil)
    // If a handler closes before its channel is active, it gets no `channelInactive`.
    channel.closeFuture.whenComplete { _ in self.leave(id) }
    return (id, evicted != nil)
  }

  /// Called when the first message is authentic. False: it was answered before.
  func accept(_ id: UInt64, ephemeral: TransportPublicKey) -> Bool {
    state.withLock { state in
      guard state.answered.insert(ephemeral) else { return false }
      state.table.markValid(id)
      return true
    }
  }

  func leave(_ id: UInt64) {
    state.withLock { state in
      state.table.remove(id)
      state.channels[id] = nil
    }
  }
}

/// The unit of limits by address: an IPv4 address (also mapped), or an IPv6 /64, which one host
/// owns.
struct AddressBucket: Hashable, Sendable {
  private let isIPv4: Bool
  private let bits: UInt64

  /// All addresses without IP share one bucket.
  init(_ address: SocketAddress?) {
    let own = address?.ipBytes ?? []
    let bytes = IPAddressText.mappedIPv4(own) ?? own
    isIPv4 = bytes.count == 4
    bits = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// The accepted connections with an unfinished handshake, limited in all and by address.
///
/// If full, one makes way, so that nobody keeps others out for long:
/// - Connections without a valid first message make way for each other once they hold a quarter of
///   the slots. So hostile computers push each other out, and a dialler with the account's key
///   stays.
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
    let slots = isAddressFull ? limitPerAddress : limit
    let rivals = connections.filter { !isAddressFull || $0.bucket == bucket }
    let unproved = rivals.filter { !$0.hasValidFirstMessage }
    let isQuarter = unproved.count * 4 >= slots
    let leaves = oldest(
      of: isQuarter ? unproved : rivals.filter(\.hasValidFirstMessage), beside: bucket)
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

/// All connections of a transport: none outlives it.
final class ChannelTable: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  /// False if the transport is shutting down.
  func insert(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let isOpen = state.withLock { state in
      if !state.isClosed { state.channels[id] = channel }
      return !state.isClosed
    }
    guard isOpen else { return false }
    channel.closeFuture.whenComplete { _ in
      self.state.withLock { $0.channels[id] = nil }
    }
    return true
  }

  /// Accepts no more; returns the open ones.
  func close() -> [any Channel] {
    state.withLock { state in
      state.isClosed = true
      return Array(state.channels.values)
    }
  }
}
