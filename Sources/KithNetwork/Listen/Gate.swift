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
