package import NIOCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Pauses a listener if the system has no room for another connection, for example no free file
/// descriptor. Otherwise it would retry the same connection at once, endlessly.
///
/// NIO's own `AcceptBackoffHandler` waits before it accepts the next connection. But it leaves the
/// listener registered after a failure, so that the system keeps waking it.
package final class ShortageHandler: ChannelInboundHandler {
  package typealias InboundIn = any Channel

  private static let shortages: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

  private let onShortage: @Sendable (IOError) -> Void
  private var rest: Scheduled<Void>?

  /// Makes a handler that calls `onShortage` at the start of each pause.
  package init(onShortage: @escaping @Sendable (IOError) -> Void = { _ in }) {
    self.onShortage = onShortage
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? IOError, Self.shortages.contains(error.errnoCode) else {
      return context.fireErrorCaught(error)
    }
    guard rest == nil else { return }
    onShortage(error)
    try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    rest = context.eventLoop.assumeIsolated().scheduleTask(in: NetworkLimits.acceptPause) {
      self.rest = nil
      try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }
  }

  package func channelInactive(context: ChannelHandlerContext) {
    rest?.cancel()
    context.fireChannelInactive()
  }
}
