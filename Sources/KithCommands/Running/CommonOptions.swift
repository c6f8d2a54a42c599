import ArgumentParser
import FoundationEssentials
import Kith
import KithNetwork
import KithTerminal
import Synchronization

/// Whether help leaves out the options that most commands have: for `-h`, not for `--help`.
///
/// Not a fixed visibility, because completions leave out hidden options.
enum ShortHelp {
  @TaskLocal static var isWanted = false

  static func isRequested(by arguments: [String]) -> Bool {
    arguments.prefix { $0 != "--" }.contains("-h")
  }

  fileprivate static var visibility: ArgumentVisibility { isWanted ? .hidden : .default }
}

struct CommonOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The device's directory; see kith --help.", valueName: "path",
      visibility: ShortHelp.visibility),
    completion: .directory)
  var directory: String?

  @Option(
    help: ArgumentHelp(
      "The device's passphrase; see kith account lock.", valueName: "file",
      visibility: ShortHelp.visibility),
    completion: .file())
  var passphraseFile: String?

  @Flag(name: .long, help: ArgumentHelp("Print JSON.", visibility: ShortHelp.visibility))
  var json = false

  @Flag(
    name: [.short, .long],
    help: ArgumentHelp("Print only errors on standard error.", visibility: ShortHelp.visibility))
  var quiet = false

  func validate() throws {
    guard directory != "" else {
      throw ValidationError(
        "The directory's name is empty. Leave --directory out for the usual one.")
    }
    let variable = ProcessInfo.processInfo.environment.variable("KITH_DIRECTORY")
    if let refusal = (directory ?? variable).flatMap(DefaultDirectory.refusal) {
      throw ValidationError("\(directory == nil ? "KITH_DIRECTORY" : "--directory"): \(refusal)")
    }
    guard passphraseFile != "" else {
      throw ValidationError("The name of the passphrase's file is empty.")
    }
  }

  var directoryURL: URL {
    Self.directory(option: directory, environment: ProcessInfo.processInfo.environment)
  }

  var console: Console { Console(isQuiet: quiet) }

  /// An empty text prints nothing. `deed`: what is done, also if it cannot be printed; the error says
  /// so.
  func print(
    _ document: @autoclosure () -> Document, text: (Style) -> String = { _ in "" },
    after deed: String? = nil
  ) throws(CommandFailure) {
    do throws(CommandFailure) {
      if json {
        try console.data(document().text())
      } else {
        let text = text(.output)
        if !text.isEmpty { try console.data(text) }
      }
    } catch {
      guard let deed, let message = error.message else { throw error }
      throw CommandFailure(error.status, "\(deed); \(message)")
    }
  }

  static func directory(option: String?, environment: [String: String]) -> URL {
    exactly(option ?? DefaultDirectory.path(environment: environment))
  }

  /// Foundation would replace a leading `~`.
  static func exactly(_ path: String) -> URL {
    let isAbsolute = path.hasPrefix("/")
    let base = FileManager.default.currentDirectoryPath
    return URL(filePath: isAbsolute ? path : base + "/" + path, directoryHint: .isDirectory)
  }
}

struct StoreOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The store; see kith --help.", valueName: "identifier", visibility: ShortHelp.visibility),
    completion: .stores)
  var store: String?

  static let usual = "default"

  /// A command on a store, as a person types it.
  static func command(_ command: String, of store: String) -> String {
    store == usual ? command : "\(command) --store \(store)"
  }

  static func identifier(
    option: String?, environment: [String: String]
  ) throws(CommandFailure) -> StoreIdentifier {
    let text = option ?? environment.variable("KITH_STORE_IDENTIFIER") ?? usual
    guard let identifier = StoreIdentifier(text) else {
      let source = option == nil ? "KITH_STORE_IDENTIFIER" : "--store"
      throw CommandFailure(
        .usage,
        "\(source): a store identifier has 1 to \(StoreIdentifier.maximumBytes) bytes and no control "
          + "characters; write for example --store com.example.Bookmarks")
    }
    guard !identifier.isReserved else {
      throw CommandFailure(
        .usage, "stores whose names begin with kith. are the account's own; see: kith carrier list")
    }
    return identifier
  }

  var identifier: StoreIdentifier {
    get throws(CommandFailure) {
      try Self.identifier(option: store, environment: ProcessInfo.processInfo.environment)
    }
  }
}

extension CommonOptions {
  /// See `Docs/CommandLine.md`.
  var passphraseSource: PassphraseSource? {
    PassphraseSource.first(
      file: passphraseFile, environment: ProcessInfo.processInfo.environment)
  }

  var passphraseQuestion: PassphraseQuestion {
    let source = passphraseSource
    return { () throws(KithError) in
      if let source { return try source.read() }
      return try PassphrasePrompt.known()
    }
  }

  /// Remembers the answer; for one directory.
  var passphraseQuestionAskedOnce: PassphraseQuestion {
    let ask = passphraseQuestion
    let answer = Mutex<Passphrase?>(nil)
    return { () throws(KithError) in
      try answer.withLock { known throws(KithError) in
        if let known { return known }
        let passphrase = try ask()
        known = passphrase
        return passphrase
      }
    }
  }
}

enum PassphrasePrompt {
  static func known() throws(KithError) -> Passphrase {
    guard let passphrase = try ask("Passphrase: ") else {
      throw KithError(
        .passphrase,
        "The device's secrets are under a passphrase, and there is no terminal to ask for it on. "
          + "Give --passphrase-file, or set \(PassphraseSource.fileVariable).")
    }
    return passphrase
  }

  /// Asks twice.
  static func new() throws(KithError) -> Passphrase {
    guard let passphrase = try ask("New passphrase: "), let again = try ask("Again: ") else {
      throw KithError(
        .passphrase,
        "There is no terminal to ask for the new passphrase on. Give --new-passphrase-file.")
    }
    guard passphrase.isSame(as: again) else {
      throw KithError(.passphrase, "The two differ; nothing has changed. Try again.")
    }
    return passphrase
  }

  /// Nil if there is no terminal.
  private static func ask(_ prompt: String) throws(KithError) -> Passphrase? {
    switch SecretPrompt.ask(prompt, limit: Passphrase.maximumBytes) {
    case .nobody: return nil
    case .givenUp: throw KithError(.passphrase, "No passphrase was given.")
    case .typed(var bytes):
      guard !bytes.isEmpty else { throw KithError(.passphrase, "The passphrase is empty.") }
      return Passphrase(zeroing: &bytes)
    }
  }
}

/// A TCP port that a person wrote.
struct PortNumber: ExpressibleByArgument, Equatable {
  let number: UInt16

  init?(argument: String) {
    guard let number = PeerAddress.port(argument) else { return nil }
    self.number = number
  }
}
