import ArgumentParser
import Foundation
import Kith

/// `kith import`.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import a settings file: JSON, a property list (XML, binary) or `dconf dump`.",
    discussion: """
      Keys are written in transactions of up to \(ImportRun.keysPerTransaction). What the store \
      refuses is left out and named with its reason; the status is 3 then.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Option(
    help: ArgumentHelp(
      "What the file is: \(ImportFormat.names). Otherwise its content tells.",
      valueName: "format"))
  var format: ImportFormat?

  @Option(help: ArgumentHelp("Put this before every key.", valueName: "text"))
  var prefix = ""

  @Flag(help: "Read the file and say what is in it; write nothing.")
  var dryRun = false

  @Argument(help: "The file; - reads standard input.")
  var file: String

  func run() async throws {
    let content = try read()
    let bar = ProgressBar("importing", total: content.entries.count, isQuiet: options.quiet)
    let clock = ContinuousClock()
    let start = clock.now
    let skipped = content.skipped.map { item in
      ImportSummary.Refused(key: prefix + item.key, code: "notAValue", reason: item.reason)
    }
    var imported = content.entries.count
    var refused: [ImportSummary.Refused] = []
    if !dryRun {
      let entries = content.entries.map {
        ImportedFile.Entry(key: prefix + $0.key, value: $0.value)
      }
      let store = try store.identifier.rawValue
      let run = try await options.withNode { node in
        var run = ImportRun { bar.update($0) }
        defer { bar.finish() }
        try await run.write(entries) { chunk in
          try await node.write(chunk.map { ($0.key, $0.value) }, in: store)
        }
        return run
      }
      imported = run.imported.count
      refused = run.refused
    }
    let summary = ImportSummary(
      file: file == "-" ? "standard input" : file, format: content.format, imported: imported,
      refused: skipped + refused, isDryRun: dryRun, seconds: (clock.now - start).seconds)
    options.print(summary.document, text: summary.text)
    if !summary.refused.isEmpty { throw CommandFailure(.refused, nil) }
  }

  private func read() throws -> ImportedFile {
    let data = try InputText.data(of: file)
    do throws(ImportError) {
      return try ImportedFile.read(data, as: format)
    } catch {
      throw CommandFailure(.failure, "\(file): \(error)")
    }
  }
}

extension ImportFormat: ExpressibleByArgument {
  /// All names, for help.
  static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
}
