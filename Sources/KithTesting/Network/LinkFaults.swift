/// The faults of the links of a ``TestAccount``.
///
/// ```swift
/// account.setFaults(LinkFaults(delay: .milliseconds(200), loss: 0.1))
/// account.advance(by: .seconds(5))
/// ```
public struct LinkFaults: Hashable, Sendable {
  /// The time that a message takes; ``TestAccount/advance(by:)`` lets it pass.
  public var delay: Duration
  /// The chance, 0 to 1, that a message is lost.
  ///
  /// Its connection is lost too, as in TCP. The devices connect again a second later.
  public var loss: Double
  /// The chance, 0 to 1, that a message is delivered twice.
  public var duplication: Double

  /// No faults.
  public static let none = Self()

  /// Makes faults; the defaults are none.
  ///
  /// - Parameters:
  ///   - delay: The time that a message takes.
  ///   - loss: The chance, 0 to 1, that a message is lost.
  ///   - duplication: The chance, 0 to 1, that a message is delivered twice.
  public init(delay: Duration = .zero, loss: Double = 0, duplication: Double = 0) {
    self.delay = delay
    self.loss = loss
    self.duplication = duplication
  }
}
