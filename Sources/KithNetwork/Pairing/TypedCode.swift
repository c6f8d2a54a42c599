package import KithCore
internal import Synchronization

/// A code as typed once, with the exchanges left. Each inviter that gets a proof can check one
/// guess by it, so they are few, over all inviters.
package final class TypedCode: Sendable {
  let code: PairingCode
  private let exchangesLeft = Mutex(NetworkLimits.pairingExchanges)

  /// Makes a code that was just typed.
  package init(_ code: PairingCode) {
    self.code = code
  }

  /// Whether any exchange is left.
  package var isSpent: Bool { exchangesLeft.withLock { $0 == 0 } }

  /// Takes one exchange; false: none is left.
  func spendExchange() -> Bool {
    exchangesLeft.withLock { left in
      guard left > 0 else { return false }
      left -= 1
      return true
    }
  }
}
