/// What goes wrong on the links of a ``TestAccount``.
public struct LinkFaults: Hashable, Sendable {
  /// How long a message takes; ``TestAccount/advance(by:)`` lets the time pass.
  public var delay: Duration
  /// The chance, 0 to 1, that a message is lost, and its connection with it, as TCP has it. The
  /// devices connect again a second later.
  public var loss: Double
  /// The chance, 0 to 1, that a message comes twice.
  public var duplication: Double

  /// No faults.
  public static let none = Self()

  /// Makes faults; the defaults are none.
  ///
  /// - Parameters:
  ///   - delay: how long a message takes.
  ///   - loss: the chance that a message is lost, 0 to 1.
  ///   - duplication: the chance that a message comes twice, 0 to 1.
  public init(delay: Duration = .zero, loss: Double = 0, duplication: Double = 0) {
    self.delay = delay
    self.loss = loss
    self.duplication = duplication
  }
}
