import ArgumentParser
import Kith
import KithCore

struct QuotaCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quota",
    abstract: "Show the store's use of its limits, and its largest values.")

  private static let named = 5

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let identifier = try store.identifier
    let (status, usage, entries) = try await options.withNode { node in
      let entries = try await node.entries(in: store.existing(at: node))
      return (
        try await node.report(), try await node.usage(of: identifier.rawValue), entries
      )
    }
    // Before its first write, the usual store is not in the status: show its limits, unused.
    let found = status.stores.first { $0.identifier == identifier }
    let sizes = try entries.map { entry in
      QuotaReport.Item(key: entry.key, bytes: try EncodedValue(entry.value).size)
    }
    let largest = sizes.enumerated()
      .sorted { ($1.element.bytes, $0.offset) < ($0.element.bytes, $1.offset) }
      .prefix(Self.named)
    let report = QuotaReport(
      store: found ?? NodeStatus.Store(identifier: identifier, usage: usage),
      largest: largest.map(\.element))
    try options.print(report.document, text: report.text)
  }
}
