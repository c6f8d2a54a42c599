import FoundationEssentials

extension EncodedValue: Codable {
  /// Reads bytes, and checks that they are canonical.
  package init(from decoder: any Decoder) throws {
    try self.init(checking: [UInt8](decoder.singleValueContainer().decode(Data.self)))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Data(bytes))
  }
}
