internal import KithCore
internal import KithCrypto
internal import NIOCore

/// A connection to an invitation before its exchange. Belongs to its channel's event loop.
final class InvitingConnection: ListenerHandshakeOwner {
  private let listener: PairingListener
  private let id: UInt64
  private var isExchanging: Bool
  /// Another exchange was under way, so this one spends no try.
  private var isTurnedAway = false
  /// Of a joiner that has proved the code; nil: the joiner has the token.
  private let codeKey: SharedPresharedKey?

  init(listener: PairingListener, id: UInt64, codeKey: SharedPresharedKey? = nil) {
    self.listener = listener
    self.id = id
    self.codeKey = codeKey
    isExchanging = codeKey != nil
  }

  func presharedKeys() -> [SharedPresharedKey] { [codeKey ?? listener.token] }

  func accepts(ephemeral: TransportPublicKey) -> Bool {
    if codeKey != nil { return listener.gate.accept(id, ephemeral: ephemeral) }
    guard listener.begin() else {
      isTurnedAway = true
      return false
    }
    isExchanging = true
    return listener.gate.accept(id, ephemeral: ephemeral)
  }

  func reply(to offer: [UInt8]) -> [UInt8]? { listener.invitation }

  func finished(
    _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
  ) -> SessionHandler? {
    let remote = context.channel.remoteAddress
    let (listener, id) = (listener, id)
    let handler = PairingChannel.handler(
      exchange, payload: payload,
      address: IPAddressText.place(
        IPAddressText.host(of: remote) ?? "unknown", remote?.port ?? 0),
      linger: listener.configuration.lingerTimeout,
      ready: { listener.arrived($0) }, over: { listener.finishExchange() })
    if handler != nil { listener.gate.leave(id) }
    return handler
  }

  func failed(_ failure: ListenerHandshakeFailure) {
    switch failure {
    case .noFirstMessage:
      break
    case .wrongMessage, .noThirdMessage:
      if !isTurnedAway, codeKey == nil { listener.spendTry() }
    }
    guard isExchanging else { return }
    isExchanging = false
    listener.finishExchange()
  }
}
