import ArgumentParser
import Kith
import KithCore

/// `kith quota`.
struct QuotaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quota",
    abstract: "Show what the store uses of its limits, and what takes the most room.")

  /// The number of largest values that are listed.
  private static let named = 5

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let identifier = try store.identifier.rawValue
    let (status, usage, entries) = try await options.withNode { node in
      let entries = try await node.entries(in: store.existing(at: node))
      return (try await node.statusReport(), try await node.usage(of: identifier), entries)
    }
    // Before the first write, the usual store has its limits, all free.
    let facts =
      status.stores.first { $0.identifier == identifier }
      ?? StoreFacts(
        identifier: identifier, keys: usage.keys, bytes: usage.bytes, limitKeys: usage.limitKeys,
        limitBytes: usage.limitBytes, limitKeyBytes: usage.limitKeyBytes,
        limitValueBytes: usage.limitValueBytes, digest: "")
    let sizes = try entries.map { entry in
      QuotaReport.Item(key: entry.key, bytes: try EncodedValue(entry.value).size)
    }
    let largest = sizes.enumerated()
      .sorted { ($1.element.bytes, $0.offset) < ($0.element.bytes, $1.offset) }
      .prefix(Self.named)
    let report = QuotaReport(store: facts, largest: largest.map(\.element))
    try options.print(report.document, text: report.text)
  }
}
