internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// The limits for half-open connections, and the answered first messages. Shared by all listeners
/// of one transport or invitation.
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
  /// another one, or returns nil: refused.
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
    // The channel does this: a handler that closes before its channel is active is not told of the
    // end.
    channel.closeFuture.whenComplete { _ in self.leave(id) }
    return (id, evicted != nil)
  }

  /// Marks a connection whose first message was authenticated. Returns false if it was
  /// answered before.
  func accept(_ id: UInt64, ephemeral: TransportPublicKey) -> Bool {
    state.withLock { state in
      guard state.answered.insert(ephemeral) else { return false }
      state.table.markValid(id)
      return true
    }
  }

  /// Removes a connection whose handshake is finished.
  func leave(_ id: UInt64) {
    state.withLock { state in
      state.table.remove(id)
      state.channels[id] = nil
    }
  }
}
