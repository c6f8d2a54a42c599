internal import NIOCore
internal import Synchronization

/// All connections of a transport, whatever their stage, so that none outlives it.
final class ChannelTable: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var isClosed = false
  }

  private let state = Mutex(State())

  /// Takes in a connection until it closes; false: the transport shuts down.
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

  /// Takes in no more, and gives those that are open.
  func close() -> [any Channel] {
    state.withLock { state in
      state.isClosed = true
      return Array(state.channels.values)
    }
  }
}
