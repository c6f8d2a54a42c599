internal import NIOCore
internal import Synchronization

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
