#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

  struct SettingSources: Sendable {
    var code: UbiquityBootstrap.Configuration?
    var environment: [String: String] = [:]
    /// Of `kith.json`, if it exists.
    var file: Data?
    var executable: String
    var home: String
  }

  struct Settings: Sendable {
    /// Whether the program named a store. Otherwise it gets its own store, on this device only.
    var isConfigured: Bool
    var storeIdentifier: StoreIdentifier
    var directory: String
    var configuration: UbiquityBootstrap.Configuration
    /// The ignored settings, and how to write them correctly.
    var warnings: [String]

    /// Each setting comes from the first source that has it: code, environment, file.
    init(resolving sources: SettingSources) {
      let (folder, program) = Self.split(sources.executable)
      let filePath = folder + "/" + ConfigurationFile.fileName
      var warnings: [String] = []
      var file: ConfigurationFile?
      if let data = sources.file {
        do throws(ConfigurationFile.Malformed) {
          file = try ConfigurationFile(data, base: folder, home: sources.home)
          if let text = file?.storeIdentifier, StoreIdentifier(text) == nil {
            file = nil
            throw .init(description: "\"storeIdentifier\" is \(Self.identifierRule)")
          }
        } catch {
          warnings.append(
            "\(filePath) is ignored: \(error). Write for example \(Self.exampleFile)")
        }
      }
      func variable(_ name: String) -> String? {
        sources.environment[name].flatMap { $0.isEmpty ? nil : $0 }
      }
      var named = variable("KITH_STORE_IDENTIFIER")
      if let text = named, StoreIdentifier(text) == nil {
        named = nil
        warnings.append(
          "KITH_STORE_IDENTIFIER is ignored: it is \(Self.identifierRule). Write for example "
            + "KITH_STORE_IDENTIFIER=com.example.Bookmarks")
      }

      var result = sources.code ?? UbiquityBootstrap.Configuration()
      result.storeIdentifier = result.storeIdentifier ?? named ?? file?.storeIdentifier
      result.directory = result.directory ?? variable("KITH_DIRECTORY") ?? file?.directory
      result.hosts = result.hosts ?? file?.hosts
      result.port = result.port ?? file?.port
      result.peers = result.peers ?? file?.peers
      result.discoversPeers = result.discoversPeers ?? file?.discoversPeers
      let passphrase =
        PassphraseSource.first(environment: sources.environment)
        ?? file?.passphraseFile.map(PassphraseSource.file)
      result.passphrase = result.passphrase ?? passphrase?.read

      let dataHome = Self.dataHome(variable("XDG_DATA_HOME"), home: sources.home)
      if let identifier = result.storeIdentifier.flatMap({ StoreIdentifier($0) }) {
        isConfigured = true
        storeIdentifier = identifier
        directory = result.directory ?? dataHome + "/kith"
      } else {
        isConfigured = false
        storeIdentifier = Self.identifier(ofProgram: program)
        directory = result.directory ?? dataHome + "/" + program + "/kith"
        warnings.append(
          "The program did not say which store it means. It gets one of its own on this device, in "
            + "\(directory), and synchronize() is false. Call UbiquityBootstrap.configure("
            + "storeIdentifier: \"com.example.Bookmarks\") first thing in the program, or set "
            + "KITH_STORE_IDENTIFIER=com.example.Bookmarks, or write \(Self.exampleFile) into "
            + filePath)
      }
      configuration = result
      self.warnings = warnings
    }

    static let exampleFile = #"{"storeIdentifier": "com.example.Bookmarks"}"#
    private static let identifierRule =
      "no text of 1 to \(StoreIdentifier.maximumBytes) bytes without control characters"

    /// A program's file name may hold line feeds, but is never too long.
    private static func identifier(ofProgram name: String) -> StoreIdentifier {
      guard let identifier = StoreIdentifier(name) ?? StoreIdentifier("program") else {
        preconditionFailure("“program” is an identifier")
      }
      return identifier
    }

    /// The XDG Base Directory Specification accepts absolute paths only.
    private static func dataHome(_ variable: String?, home: String) -> String {
      if let variable, variable.hasPrefix("/") { return variable }
      return home + "/.local/share"
    }

    private static func split(_ executable: String) -> (folder: String, program: String) {
      let parts = executable.split(separator: "/")
      let folder = "/" + parts.dropLast().joined(separator: "/")
      return (folder == "/" ? "" : folder, parts.last.map(String.init) ?? "program")
    }
  }
#endif
