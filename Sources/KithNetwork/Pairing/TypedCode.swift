package import KithCore
internal import Synchronization

/// A code as typed once. Each proof lets one inviter check one guess, so its exchanges are few.
package final class TypedCode: Sendable {
  let code: PairingCode
  private let exchangesLeft = Mutex(NetworkLimits.pairingExchanges)

  package init(_ code: PairingCode) {
    self.code = code
  }

  package var isSpent: Bool { exchangesLeft.withLock { $0 == 0 } }

  /// False: none is left.
  func spendExchange() -> Bool {
    exchangesLeft.withLock { left in
      guard left > 0 else { return false }
      left -= 1
      return true
    }
  }
}
