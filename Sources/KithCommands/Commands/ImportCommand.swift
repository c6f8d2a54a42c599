import ArgumentParser
import Foundation
import Kith
import KithCore
import KithTerminal

struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import JSON, a property list (XML, binary) or a `dconf dump`.",
    discussion: """
      Writes transactions of up to \(ImportRun.keysPerTransaction) keys. Names refused keys with \
      the reason; the status is then 3. Of a dconf dump, the key \(DconfDocument.textsKey) keeps \
      types for kith export --format dconf.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: WrittenStoreOptions

  @Option(
    help: ArgumentHelp(
      "The file's format. Default: by its content.", valueName: "format"))
  var format: ImportFormat?

  @Option(help: ArgumentHelp("Text before every key.", valueName: "text"))
  var prefix = ""

  @Flag(help: "Write nothing; show what would be imported and refused.")
  var dryRun = false

  @Argument(help: "The file; - reads standard input.", completion: .file())
  var file: String

  func run() async throws {
    let content = try read()
    let bar = ProgressBar("importing", total: content.entries.count, isQuiet: options.quiet)
    let clock = ContinuousClock()
    let start = clock.now
    let skipped = content.skipped.map { item in
      ImportSummary.Refused(key: prefix + item.key, code: "notAValue", reason: item.reason)
    }
    let entries = content.entries.map {
      ImportedFile.Entry(key: prefix + $0.key, value: $0.value)
    }
    let texts = [String: String](
      uniqueKeysWithValues: content.texts.map { (prefix + $0.key, $0.value) })
    let identifier = try store.store.identifier.rawValue
    var run = ImportRun { bar.update($0) }
    if dryRun {
      var trial = try await trialStore(identifier)
      try await run.write(entries) { chunk in try trial.write(chunk.map { ($0.key, $0.value) }) }
    } else {
      run = try await options.withNode(writes: true) { [run] node in
        var run = run
        let identifier = try await store.writable(at: node, options.console)
        defer { bar.finish() }
        try await run.write(entries) { chunk in
          try await node.write(chunk.map { ($0.key, $0.value) }, in: identifier)
        }
        if content.format == .dconf, !run.imported.isEmpty {
          let key = DconfDocument.textsKey
          let old = try await node.values(in: identifier)[Key(key)]
          if let new = DconfDocument.texts(old, after: run.imported, with: texts) {
            try await run.write([ImportedFile.Entry(key: key, value: new)]) { _ in
              try await node.write([(key, new)], in: identifier)
            }
          }
        }
        return run
      }
    }
    bar.finish()
    let summary = ImportSummary(
      file: file == "-" ? "standard input" : file, format: content.format,
      imported: run.imported.count(where: {
        content.format != .dconf || $0 != DconfDocument.textsKey
      }),
      refused: skipped + run.refused, isDryRun: dryRun,
      seconds: (clock.now - start).seconds)
    try options.print(summary.document, text: summary.text)
    if !summary.refused.isEmpty { throw CommandFailure(.refused, nil) }
  }

  private func trialStore(_ store: String) async throws -> TrialStore {
    try await options.withNode { node in
      TrialStore(
        values: try await node.values(in: store), usage: try await node.usage(of: store))
    }
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

extension ImportFormat: ExpressibleByArgument {}
