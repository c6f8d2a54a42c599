internal import Glibc
internal import KithCore
internal import KithCrypto
package import NIOCore

/// An accepted connection before its session. Belongs to its channel's event loop.
final class AcceptedConnection: ListenerHandshakeOwner {
  private let transport: Transport
  private let id: UInt64
  private let host: String
  /// No authentic message came yet.
  private var isUnauthenticated = true
  private var version: UInt32 = 0
  /// This node has too many sessions.
  private var isRefused = false

  init(transport: Transport, id: UInt64, host: String) {
    self.transport = transport
    self.id = id
    self.host = host
  }

  func presharedKeys() -> [SharedPresharedKey] {
    transport.delegate.presharedKeys()
  }

  func accepts(ephemeral: TransportPublicKey) -> Bool {
    isUnauthenticated = false
    let isNew = transport.gate.accept(id, ephemeral: ephemeral)
    if !isNew { transport.delegate.noted(.replayed) }
    return isNew
  }

  func reply(to offer: [UInt8]) -> [UInt8]? {
    guard let offer = Offer(decoding: offer), let version = Offer.current.chosen(from: offer)
    else { return nil }
    self.version = version
    var hello = transport.delegate.hello()
    hello.version = version
    return hello.encoded()
  }

  func finished(
    _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
  ) -> SessionHandler? {
    guard let hello = Hello(decoding: payload), hello.version == version else { return nil }
    let port = hello.port != 0 ? Int(hello.port) : context.channel.remoteAddress?.port ?? 0
    let handler = transport.establish(
      exchange, hello: hello, pskIndex: pskIndex, address: IPAddressText.endpoint(host, port),
      dial: nil)
    isRefused = handler == nil
    if !isRefused { transport.gate.leave(id) }
    return handler
  }

  func failed(_ failure: ListenerHandshakeFailure) {
    if !isRefused { transport.delegate.noted(.handshakeFailed) }
    if isUnauthenticated, failure == .wrongMessage {
      transport.delegate.unauthenticatedRefused(host)
    }
  }
}

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
