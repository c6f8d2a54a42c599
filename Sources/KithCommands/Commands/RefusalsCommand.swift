import ArgumentParser
import Kith
import KithCore

/// `kith refusals`.
struct RefusalsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refusals",
    abstract: "Show transactions that were accepted here and refused when they were published.",
    discussion: """
      They are kept, with all that they wrote, until they are taken with --take.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Flag(help: "Forget them once they are printed.")
  var take = false

  func run() async throws {
    let identifier = try store.identifier.rawValue
    // Printed before they are removed, so that a failed print loses none.
    try await options.withNode { node in
      let refusals = try await node.refusals(
        in: store.existing(at: node), takingThrough: nil)
      let report = try RefusalsReport(store: identifier, refusals)
      try options.print(report.document) { report.items.isEmpty ? "" : report.text($0) }
      if report.items.isEmpty && !options.json { options.console.talk("Nothing was refused.") }
      if take, let last = refusals.last {
        _ = try await node.refusals(in: identifier, takingThrough: last.number)
      }
    }
  }
}

extension RefusalsReport {
  /// Makes the report on a store's refusals.
  init(store: String, _ refusals: [RefusedTransaction]) throws {
    self.init(
      store: store,
      items: try refusals.map { refusal in
        Item(
          number: refusal.number, reason: refusal.reason.rawValue,
          writtenMilliseconds: refusal.clock.milliseconds,
          operations: try refusal.writes.map { write in
            Write(
              key: write.key, value: write.value,
              bytes: try write.value.map { try EncodedValue($0).size } ?? 0)
          })
      })
  }
}
