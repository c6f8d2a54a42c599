public import KithCore
internal import Synchronization

/// A code as one person typed it once, with the exchanges that it may still be proved in. Every
/// inviter that gets a proof can check one guess by it, so they are few, over all inviters.
public final class TypedCode: Sendable {
  let code: PairingCode
  private let exchangesLeft = Mutex(NetworkLimits.pairingExchanges)

  /// A code that was just typed.
  public init(_ code: PairingCode) {
    self.code = code
  }

  /// Whether it may be proved to anyone yet.
  public var isSpent: Bool { exchangesLeft.withLock { $0 == 0 } }

  /// Takes one exchange; false: there are none left.
  func spendExchange() -> Bool {
    exchangesLeft.withLock { left in
      guard left > 0 else { return false }
      left -= 1
      return true
    }
  }
}
