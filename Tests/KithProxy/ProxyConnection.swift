internal import NIOCore
internal import NIOPosix
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// One connection through the proxy: the client's, the one to the target, and a stream for
/// each direction.
///
/// The end of one side reaches the other side only over its direction, so a stalled direction hides
/// it too.
final class ProxyConnection: Sendable {
  typealias AsyncChannel = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  private struct State {
    var channels: [any Channel]
    var isAbandoned = false
    var isReset = false
  }

  let forward: ProxyStream
  let backward: ProxyStream
  private let state: Mutex<State>

  private let onReset: @Sendable () -> Void

  /// Makes a connection of a client; `onReset` is called if ``FaultyProxy/Faults/resets``
  /// resets it.
  init(
    client: any Channel, forward: ProxyStream, backward: ProxyStream,
    onReset: @escaping @Sendable () -> Void
  ) {
    state = Mutex(State(channels: [client]))
    (self.forward, self.backward, self.onReset) = (forward, backward, onReset)
  }

  /// Serves until both directions have ended, the connection is reset, or the task is cancelled.
  func serve(_ client: AsyncChannel, connect: () async throws -> AsyncChannel) async {
    try? await client.executeThenClose { fromClient, toClient in
      // No connection is made through a stalled proxy: its first packet and the answer would
      // not pass.
      guard await forward.opened(), await backward.opened() else { return }
      let target: AsyncChannel
      do { target = try await connect() } catch { return Self.reset(client.channel) }
      add(target.channel)
      try await target.executeThenClose { fromTarget, toTarget in
        await withTaskGroup(of: Void.self) { group in
          group.addTask { await self.forward.fill(from: fromClient) }
          group.addTask { await self.backward.fill(from: fromTarget) }
          group.addTask {
            await self.drain(
              self.forward, into: toTarget, sink: target.channel, source: client.channel,
              back: self.backward)
          }
          group.addTask {
            await self.drain(
              self.backward, into: toClient, sink: client.channel, source: target.channel,
              back: self.forward)
          }
        }
      }
    }
  }

  /// Resets both sides at once. Returns false if it was reset before or abandoned.
  @discardableResult
  func reset() -> Bool {
    let channels = state.withLock { state -> [any Channel]? in
      guard !state.isAbandoned, !state.isReset else { return nil }
      state.isReset = true
      return state.channels
    }
    guard let channels else { return false }
    forward.stop()
    backward.stop()
    for channel in channels { Self.reset(channel) }
    return true
  }

  /// Stops all bytes, and keeps both sides open.
  func abandon() {
    state.withLock { $0.isAbandoned = true }
    forward.abandon()
    backward.abandon()
  }

  private func add(_ channel: any Channel) {
    let isReset = state.withLock { state in
      state.channels.append(channel)
      return state.isReset
    }
    if isReset { Self.reset(channel) }
  }

  /// Passes on the bytes of a direction until its end, which it passes on as well.
  private func drain(
    _ stream: ProxyStream, into outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>,
    sink: any Channel, source: any Channel, back: ProxyStream
  ) async {
    do {
      while true {
        switch await stream.next() {
        case .pass(let bytes): try await outbound.write(bytes)
        case .reset(let bytes):
          if bytes.readableBytes > 0 { try await outbound.write(bytes) }
          if reset() { onReset() }
          return
        case .end(.closed): return outbound.finish()
        case .end(.reset): return Self.reset(sink)
        case .stopped: return
        }
      }
    } catch {
      // The sink does not take any more. The sender learns of it over the opposite direction.
      if await back.opened() { Self.reset(source) }
    }
  }

  /// Closes a connection so that the other side gets a TCP reset.
  static func reset(_ channel: any Channel) {
    guard let options = channel as? any SocketOptionProvider else {
      return channel.close(promise: nil)
    }
    options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
      channel.close(promise: nil)
    }
  }
}
