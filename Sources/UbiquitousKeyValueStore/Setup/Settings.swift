#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

  struct SettingSources: Sendable {
    var environment: [String: String] = [:]
    /// The content of `kith.json`; nil: there is no such file.
    var file: Data?
    var executable: String
    var home: String
  }

  struct Settings: Sendable {
    /// Whether the program named a store. Otherwise it gets one of its own, in a directory of its own
    /// unless one is named, which may have an account.
    var isConfigured: Bool
    var storeIdentifier: StoreIdentifier
    var accounts: Accounts.Configuration
    var policy = KeyValueStore.Policy.standard
    var trapsOnInvalidKeys = false
    /// The ignored settings, and how to write them correctly.
    var warnings: [String] = []

    /// Each setting comes from the first source that has it: code, environment, file. `code`
    /// changes what the others say.
    init(
      resolving sources: SettingSources, storeIdentifier: StoreIdentifier? = nil,
      directory: String? = nil, code: (inout Accounts.Configuration) -> Void = { _ in }
    ) {
      let (folder, program) = Self.split(sources.executable)
      let filePath = folder + "/" + ConfigurationFile.fileName
      // The default directory depends on the name.
      var accounts = Accounts.Configuration(directory: "")
      accounts.logger.logLevel = .notice
      var named: StoreIdentifier?
      if let data = sources.file {
        do throws(ConfigurationFile.Malformed) {
          let file = try ConfigurationFile(
            data, changing: accounts, base: folder, home: sources.home)
          (named, accounts) = (file.storeIdentifier, file.accounts)
        } catch {
          warnings.append(
            "\(filePath) is ignored: \(error). Write for example \(Self.exampleFile)")
        }
      }
      if let text = sources.environment.variable("KITH_STORE_IDENTIFIER") {
        if let identifier = StoreIdentifier(text) {
          named = identifier
        } else {
          warnings.append(
            "KITH_STORE_IDENTIFIER is ignored: it is \(ConfigurationFile.identifierRule). Write for "
              + "example KITH_STORE_IDENTIFIER=com.example.Bookmarks")
        }
      }
      named = storeIdentifier ?? named
      isConfigured = named != nil
      self.storeIdentifier = named ?? Self.identifier(ofProgram: program)

      let dataHome = DefaultDirectory.dataHome(sources.environment, home: sources.home)
      let usual = dataHome + (isConfigured ? "/kith" : "/" + program + "/kith")
      let other = accounts.directory.isEmpty ? usual : accounts.directory
      accounts.directory = directory ?? sources.environment.variable("KITH_DIRECTORY") ?? other
      let passphrase = PassphraseSource.first(environment: sources.environment)
      accounts.passphrase = passphrase?.read ?? accounts.passphrase
      code(&accounts)
      self.accounts = accounts
      if !isConfigured {
        warnings.append(
          "The program did not say which store it means. It gets one of its own, \(self.storeIdentifier) "
            + "in \(accounts.directory), and synchronize() is false. Call UbiquityBootstrap.configure("
            + "storeIdentifier: \"com.example.Bookmarks\") first thing in the program, or set "
            + "KITH_STORE_IDENTIFIER=com.example.Bookmarks, or write \(Self.exampleFile) into "
            + filePath)
      }
    }

    static let exampleFile = #"{"storeIdentifier": "com.example.Bookmarks"}"#

    /// A program's file name may hold line feeds, but is never too long.
    private static func identifier(ofProgram name: String) -> StoreIdentifier {
      guard let identifier = StoreIdentifier(name) ?? StoreIdentifier("program") else {
        preconditionFailure("“program” is an identifier")
      }
      return identifier
    }

    private static func split(_ executable: String) -> (folder: String, program: String) {
      let parts = executable.split(separator: "/")
      let folder = "/" + parts.dropLast().joined(separator: "/")
      return (folder == "/" ? "" : folder, parts.last.map(String.init) ?? "program")
    }
  }

  /// The file `kith.json` beside the executable: one JSON object.
  ///
  /// | member | value | if missing |
  /// | --- | --- | --- |
  /// | `storeIdentifier` | text | from code or the environment |
  /// | `directory` | a path, from the file's directory, or `~/…` | `$XDG_DATA_HOME/kith` |
  /// | `hosts`, `peers` | lists of text | every address, none |
  /// | `port` | 0 to 65535 | 4114 |
  /// | `discoversPeers` | true or false | true |
  /// | `keepsHistory` | true or false | as set last; at first true |
  /// | `passphraseFile` | a path, as `directory` | from code or the environment, or none |
  struct ConfigurationFile {
    static let fileName = "kith.json"
    /// In bytes.
    static let sizeLimit = 1 << 16
    static let identifierRule =
      "no text of 1 to \(StoreIdentifier.maximumBytes) bytes without control characters"

    var storeIdentifier: StoreIdentifier?
    var accounts: Accounts.Configuration

    /// The reason why an existing file cannot be used.
    struct Malformed: Error, CustomStringConvertible {
      var description: String
    }

    /// Reads the file's bytes; `accounts` has what they lack. `base` is the file's directory. An
    /// unknown member, which may be mistyped, is an error.
    init(
      _ data: Data, changing accounts: Accounts.Configuration, base: String, home: String
    ) throws(Malformed) {
      guard data.count <= Self.sizeLimit else {
        throw Malformed(description: "it has more than \(Self.sizeLimit) bytes")
      }
      guard let object = try? JSONSerialization.jsonObject(with: data),
        case .dictionary(let members)? = try? PropertyListValue(foundationObject: object)
      else { throw Malformed(description: "it is no JSON object") }
      self.accounts = accounts
      for (key, value) in members.sorted(by: { $0.key < $1.key }) {
        switch key {
        case "storeIdentifier":
          storeIdentifier = StoreIdentifier(try Self.text(value, key))
          guard storeIdentifier != nil else {
            throw Malformed(description: "\"storeIdentifier\" is \(Self.identifierRule)")
          }
        case "directory":
          self.accounts.directory = Self.path(try Self.text(value, key), base: base, home: home)
        case "passphraseFile":
          let path = Self.path(try Self.text(value, key), base: base, home: home)
          self.accounts.passphrase = PassphraseSource.file(path).read
        case "hosts": self.accounts.hosts = try Self.texts(value, key)
        case "peers": self.accounts.peers = try Self.texts(value, key)
        case "port":
          guard case .integer(let number) = value, let port = UInt16(exactly: number) else {
            throw Malformed(description: "\"port\" is no number from 0 to 65535")
          }
          self.accounts.port = port
        case "discoversPeers": self.accounts.discoversPeers = try Self.bool(value, key)
        case "keepsHistory": self.accounts.keepsHistory = try Self.bool(value, key)
        default: throw Malformed(description: "\"\(key)\" means nothing")
        }
      }
    }

    private static func bool(
      _ value: PropertyListValue, _ key: String
    ) throws(Malformed) -> Bool {
      guard case .bool(let isOn) = value else {
        throw Malformed(description: "\"\(key)\" is neither true nor false")
      }
      return isOn
    }

    private static func text(
      _ value: PropertyListValue, _ key: String
    ) throws(Malformed) -> String {
      guard case .string(let text) = value, !text.isEmpty else {
        throw Malformed(description: "\"\(key)\" is no text, or empty")
      }
      return text
    }

    private static func texts(
      _ value: PropertyListValue, _ key: String
    ) throws(Malformed) -> [String] {
      guard case .array(let values) = value else {
        throw Malformed(description: "\"\(key)\" is no list of texts")
      }
      var texts: [String] = []
      for value in values { texts.append(try text(value, key)) }
      return texts
    }

    private static func path(_ path: String, base: String, home: String) -> String {
      if path.hasPrefix("/") { return path }
      if path.hasPrefix("~/") { return home + path.dropFirst() }
      return base + "/" + path
    }
  }
#endif
