extension FuzzTarget {
  /// The input that an inviter and a joiner read before either trusts the other. The first byte
  /// selects the kind of the rest: the exchange of a code, bytes of a connection to either side,
  /// the messages of joining, or texts that people paste.
  static let pairing = FuzzTarget(name: "pairing") { bytes in
    var input = FuzzInput(bytes)
    switch input.number(below: 5) {
    case 0: CodeExchangeRun.run(&input)
    case 1: CodeConnectionRun.inviter(&input)
    case 2: CodeConnectionRun.joiner(&input)
    case 3: JoiningRun.run(&input)
    default: PairingTexts.read(input.rest())
    }
  } seeds: {
    try CodeExchangeRun.seeds + CodeConnectionRun.seeds + JoiningRun.seeds + PairingTexts.seeds
  }
}
