/// The damaged data that was dropped since the store was last whole.
public struct StoreLoss: Codable, Hashable, Sendable {
  /// Change sets with a dropped part.
  public var changeSets: Int
  /// Their dropped entries, as far as rows could be read.
  public var entries: Int
  /// Whether a person has accepted the loss, so that it is not reported.
  ///
  /// Data that another device returns is accepted all the same.
  package var isAccepted: Bool

  package init(changeSets: Int = 0, entries: Int = 0, isAccepted: Bool = false) {
    self.changeSets = changeSets
    self.entries = entries
    self.isAccepted = isAccepted
  }

  package var text: String {
    changeSets == 0
      ? "it is not known how much"
      : "change sets damaged: \(changeSets), entries dropped: \(entries)"
  }
}
