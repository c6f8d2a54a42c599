/// The damaged data that was dropped since the store was last whole.
public struct StoreLoss: Codable, Hashable, Sendable {
  /// Damaged rows, of this store or of another on this device; 0: it is not known how many.
  public var rows: Int
  /// Whether a person has accepted the loss, so that it is not reported.
  ///
  /// Data that another device returns is accepted all the same.
  package var isAccepted: Bool

  package init(rows: Int = 0, isAccepted: Bool = false) {
    self.rows = rows
    self.isAccepted = isAccepted
  }

  package var text: String { rows == 0 ? "it is not known how much" : "damaged rows: \(rows)" }

  package var row: [UInt8] { UInt64(rows).row + [isAccepted ? 1 : 0] }

  package init?(row: [UInt8]) {
    var bytes = RowBytes(row)
    self.init(rows: Int(clamping: bytes.number(bytes: 8)), isAccepted: bytes.number(bytes: 1) != 0)
    guard bytes.isExact else { return nil }
  }
}
