#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

  struct SettingSources: Sendable {
    var environment: [String: String] = [:]
    /// Of `kith.json`, if it exists.
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
#endif
