package indirect enum PairingError: Error, Hashable, Sendable, CustomStringConvertible {
  case cannotConnect(NetworkFailure)
  /// The other side closed silently: it has another token, or the invitation is over.
  case wrongToken(address: PeerAddress)
  case expired
  case triesExhausted
  /// Another exchange is under way, or another task waits.
  case busy
  /// The inviter has another code; `nil`: the number of tries is unknown.
  case wrongCode(address: PeerAddress, triesLeft: Int?)
  /// The host takes no codes, or did not answer in time.
  case noInviter(address: PeerAddress)
  /// The code was proved to the maximum number of inviters.
  case exchangesSpent
  /// The other side closed or sent a malformed message.
  case closed
  /// The reasons in the order of trying.
  case noneAnswered([PairingError])
  case messageTooLong(bytes: Int, limit: Int)

  package var description: String {
    let (fact, advice) = words
    return advice.map { "\(fact); \($0)" } ?? fact
  }

  private var words: (fact: String, advice: String?) {
    switch self {
    case .cannotConnect(let failure): ("\(failure)", Self.checkAddress)
    case .wrongToken(let address):
      (
        "\(address) does not accept the code",
        "check it for typing errors, or make a new invitation"
      )
    case .expired: ("the invitation has expired", "make a new one")
    case .triesExhausted: ("too many wrong codes were tried", "make a new invitation")
    case .busy: ("an exchange is under way already", "wait for it to end")
    case .wrongCode(let address, let triesLeft):
      switch triesLeft {
      case nil: ("the device at \(address) does not have this code", "check it")
      case 0:
        (
          "the device at \(address) has another code, and its invitation is over",
          "make a new one"
        )
      case let left?:
        (
          "the device at \(address) has another code",
          "check it (\(left == 1 ? "1 try" : "\(left) tries") left)"
        )
      }
    case .noInviter(let address): ("nobody at \(address) takes a code now", Self.checkAddress)
    case .exchangesSpent:
      (
        "\(NetworkLimits.pairingExchanges) devices were asked and none has this code",
        "check it, or name the inviting device's address"
      )
    case .closed: ("the other side ended the exchange", "make a new invitation")
    case .noneAnswered(let errors):
      (errors.map { $0.words.fact }.joined(separator: ", "), Self.checkAddress)
    case .messageTooLong(let bytes, let limit):
      ("a pairing message of \(bytes) bytes exceeds \(limit) bytes", nil)
    }
  }

  private static let checkAddress =
    "check the address, and that `kith invite` is running; a code or token admits one device"
}
