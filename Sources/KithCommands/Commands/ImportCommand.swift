import ArgumentParser
import Kith
import KithCore
import KithTerminal

struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Import JSON, a property list (XML, binary) or a `dconf dump`.",
    discussion: """
      Writes each key by itself. Names refused keys with the reason; the status is then 3. The \
      account keeps the types of a dconf dump, for kith export --format dconf; if it cannot keep \
      some, the status is 3 too.

      Keys longer than \(Policy.standard.keyBytes) bytes need a store that was made for them: \
      --store NAME --key-bytes NUMBER creates one, on all devices. Programs must open it with the \
      same limits.
      """)

  @Option(
    help: ArgumentHelp(
      "The file's format. Default: by its content.", valueName: "format"))
  var format: ImportFormat?

  @Option(help: ArgumentHelp("Text before every key.", valueName: "text"))
  var prefix = ""

  @Option(
    help: ArgumentHelp(
      "The most bytes of a key in a new store. Default: \(Policy.standard.keyBytes).",
      valueName: "number"))
  var keyBytes: Int?

  @Flag(help: "Write nothing; show what would be imported and refused.")
  var dryRun = false

  @OptionGroup var store: WrittenStoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The file; - reads standard input.", completion: .file())
  var file: String

  func validate() throws {
    let limits = Policy.standard.keyBytes...Policy.maximum.keyBytes
    guard keyBytes.map(limits.contains) ?? true else {
      throw ValidationError(
        "The limit on keys is \(limits.lowerBound) to \(limits.upperBound) bytes.")
    }
  }

  func run() async throws {
    let content = try read()
    let passphrase = options.passphraseQuestionAskedOnce
    if let keyBytes { try await prepareStore(keyBytes: keyBytes, passphrase) }
    var summary: ImportSummary
    if dryRun {
      let identifier = try store.store.identifier.rawValue
      summary = try await options.withNode(reads: true, passphrase: passphrase) { node in
        try await content.rehearse(identifier, at: node, keyBytes: keyBytes)
      }
    } else {
      let bar = ProgressBar("importing", total: content.entries.count, isQuiet: options.quiet)
      summary = try await options.withNode(writes: true, passphrase: passphrase) { node in
        let identifier = try await store.writable(at: node, options.console)
        defer { bar.finish() }
        return try await content.write(to: identifier, at: node) { bar.update($0) }
      }
    }
    summary.file = file == "-" ? "standard input" : file
    try options.print(summary.document, text: summary.text)
    guard summary.isWhole else { throw CommandFailure(.refused, nil) }
  }

  /// Creates a missing store with this limit, except in a dry run. One that is there must permit as
  /// much.
  private func prepareStore(
    keyBytes: Int, _ passphrase: @escaping PassphraseQuestion
  ) async throws {
    let identifier = try store.store.identifier
    guard try !store.store.isDefault else {
      throw CommandFailure(
        .usage, "every node creates the default store, so --key-bytes needs another: --store NAME")
    }
    let isThere = try await options.withNode(reads: dryRun, passphrase: passphrase) { node in
      let known = try await node.status().stores.first { $0.identifier == identifier }
      if let limit = known?.usage.policy.keyBytes, limit < keyBytes {
        throw CommandFailure(
          .refused,
          "the store \"\(Columns.printable(identifier.rawValue))\" permits keys of \(limit) bytes, and "
            + "its limits stay; name a new store with --store")
      }
      if known == nil, !dryRun { _ = try await store.writable(at: node, options.console) }
      return known != nil
    }
    guard !isThere, !dryRun else { return }
    var configuration = options.accounts(passphrase: passphrase)
    configuration.discoversPeers = false
    try await Accounts(configuration).use { accounts in
      _ = try accounts.store(identifier.rawValue, policy: Policy(keyBytes: keyBytes))
    }
  }

  private func read() throws -> ImportedFile {
    let data = try InputText.data(of: file)
    do {
      return try ImportedFile(data, as: format, prefix: prefix)
    } catch let error as ImportError {
      throw CommandFailure(.failure, "\(file): \(error)")
    }
  }
}

extension ImportFormat: ExpressibleByArgument {}
