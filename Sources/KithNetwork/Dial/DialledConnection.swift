internal import KithCore
internal import KithCrypto

/// A dialled connection before its session. Belongs to its channel's event loop.
final class DialledConnection: DiallerHandshakeOwner {
  struct Ourselves: Error {}
  /// Malformed, or with a version that was not offered.
  struct WrongHello: Error {}

  private let transport: Transport
  private let dial: Dial
  private let pskIndex: Int
  private var hello: Hello?
  /// This node has too many sessions.
  private var isRefused = false

  init(transport: Transport, dial: Dial, pskIndex: Int) {
    self.transport = transport
    self.dial = dial
    self.pskIndex = pskIndex
  }

  func offer() -> [UInt8] { Offer.current.encoded() }

  func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8] {
    guard let hello = Hello(decoding: reply), Offer.current.versions.contains(hello.version) else {
      throw WrongHello()
    }
    self.hello = hello
    var answer = transport.delegate.hello()
    // The same key in another process is a clone: both sides must detect it.
    if key == transport.keys.transportPublicKey, hello.process == answer.process {
      throw Ourselves()
    }
    answer.version = hello.version
    return answer.encoded()
  }

  func finished(_ exchange: NoiseExchange) -> SessionHandler? {
    guard let hello else { return nil }
    let handler = transport.establish(
      exchange, hello: hello, pskIndex: pskIndex, address: dial.address.description, dial: dial)
    isRefused = handler == nil
    return handler
  }

  func failed(_ error: (any Error)?) {
    if error is Ourselves {
      transport.dialler.failed(dial, .ourselves)
    } else if isRefused {
      transport.dialler.failed(dial, .noRoom)
    } else {
      transport.counters.update { $0.handshakeFailures += 1 }
      transport.dialler.failed(dial, .refused)
    }
  }
}
