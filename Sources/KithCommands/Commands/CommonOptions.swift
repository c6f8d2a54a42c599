import ArgumentParser
import Foundation
import Kith
import KithTerminal

/// Options of every command.
struct CommonOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The device's directory.",
      discussion: """
        Otherwise KITH_DIRECTORY, $XDG_DATA_HOME/kith or ~/.local/share/kith, in this order.
        """,
      valueName: "path"),
    completion: .directory)
  var directory: String?

  @Option(
    help: ArgumentHelp(
      "A file with the passphrase of the device's secrets, where they are under one.",
      discussion: "Otherwise it is looked for as `kith account lock --help` says.",
      valueName: "file"),
    completion: .file())
  var passphraseFile: String?

  @Flag(name: .long, help: "Print JSON for programs.")
  var json = false

  @Flag(name: [.short, .long], help: "Say nothing but errors on standard error.")
  var quiet = false

  func validate() throws {
    guard directory != "" else {
      throw ValidationError(
        "The directory's name is empty. Leave --directory out for the usual one.")
    }
  }

  /// The directory that the command works on.
  var directoryURL: URL {
    Self.directory(option: directory, environment: ProcessInfo.processInfo.environment)
  }

  /// The output of the command.
  var console: Console { Console(isQuiet: quiet) }

  /// Prints a report in the requested form. An empty text prints nothing.
  ///
  /// - Throws: ``CommandFailure`` if standard output cannot be written.
  func print(
    _ document: @autoclosure () -> Document, text: (Style) -> String
  ) throws(CommandFailure) {
    if json {
      try console.data(document().text())
    } else {
      let text = text(.output)
      if !text.isEmpty { try console.data(text) }
    }
  }

  /// Returns the directory from option and environment.
  static func directory(option: String?, environment: [String: String]) -> URL {
    func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    if let path = option ?? named("KITH_DIRECTORY") {
      return exactly(path)
    }
    // The XDG Base Directory Specification takes absolute paths only.
    if let path = named("XDG_DATA_HOME"), path.hasPrefix("/") {
      return exactly(path).appending(path: "kith")
    }
    let home = named("HOME").map(exactly)
    return (home ?? FileManager.default.homeDirectoryForCurrentUser)
      .appending(path: ".local/share/kith")
  }

  /// Returns a directory with exactly the given name. Foundation would replace a leading `~` by a
  /// home, which is the shell's task.
  static func exactly(_ path: String) -> URL {
    let isAbsolute = path.hasPrefix("/")
    let base = FileManager.default.currentDirectoryPath
    return URL(filePath: isAbsolute ? path : base + "/" + path, directoryHint: .isDirectory)
  }
}

/// Options of commands on one store.
struct StoreOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The store's identifier.", discussion: "Otherwise KITH_STORE_IDENTIFIER or \"default\".",
      valueName: "identifier"))
  var store: String?

  /// Returns the identifier from option and environment.
  static func identifier(
    option: String?, environment: [String: String]
  ) throws(CommandFailure) -> StoreIdentifier {
    let inEnvironment = environment["KITH_STORE_IDENTIFIER", default: ""]
    let text = option ?? (inEnvironment.isEmpty ? "default" : inEnvironment)
    guard let identifier = StoreIdentifier(text) else {
      let source = option == nil ? "KITH_STORE_IDENTIFIER" : "--store"
      throw CommandFailure(
        .usage,
        "\(source): a store identifier has 1 to \(StoreIdentifier.maximumBytes) bytes and no control "
          + "characters; write for example --store com.example.Bookmarks")
    }
    return identifier
  }

  /// The store that the command works on.
  var identifier: StoreIdentifier {
    get throws(CommandFailure) {
      try Self.identifier(option: store, environment: ProcessInfo.processInfo.environment)
    }
  }
}
