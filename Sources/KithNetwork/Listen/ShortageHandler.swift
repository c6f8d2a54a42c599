internal import Glibc
package import NIOCore

/// Pauses a listener if the system cannot make another connection, for example without a free file
/// descriptor. Otherwise it retries at once, endlessly.
///
/// NIO's `AcceptBackoffHandler` leaves the listener registered, so the system keeps waking it.
package final class ShortageHandler: ChannelInboundHandler {
  package typealias InboundIn = any Channel

  private static let shortages: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

  private let onShortage: @Sendable (IOError) -> Void
  private var rest: Scheduled<Void>?

  /// Called at the start of each pause.
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
