internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// Who may come in: the bounds on half-open connections, and the first messages that have been
/// answered. Shared by all listeners of one transport or invitation.
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

  /// How many are half open.
  var halfOpen: Int { state.withLock { $0.table.count } }

  /// Takes in an accepted connection until it closes or its handshake is done, and closes another
  /// where there is no room; nil: refused.
  func admit(_ channel: any Channel) -> (id: UInt64, evicted: Bool)? {
    let bucket = AddressBucket(channel.remoteAddress)
    let (id, admission, evicted) = state.withLock { state in
      state.lastID += 1
      let id = state.lastID
      let admission = state.table.admit(id, from: bucket)
      if admission != .refused { state.channels[id] = channel }
      guard case .admittedInsteadOf(let other) = admission else {
        return (id, admission, nil as (any Channel)?)
      }
      return (id, admission, state.channels.removeValue(forKey: other))
    }
    evicted?.close(promise: nil)
    guard admission != .refused else { return nil }
    // No handler can tell: one that closes before the channel is active is not told of its end.
    channel.closeFuture.whenComplete { _ in self.leave(id) }
    return (id, evicted != nil)
  }

  /// A connection's first message authenticated; false: it was answered before.
  func accept(_ id: UInt64, ephemeral: TransportPublicKey) -> Bool {
    state.withLock { state in
      guard state.answered.insert(ephemeral) else { return false }
      state.table.markValid(id)
      return true
    }
  }

  /// A connection's handshake is done.
  func leave(_ id: UInt64) {
    state.withLock { state in
      state.table.remove(id)
      state.channels[id] = nil
    }
  }
}
