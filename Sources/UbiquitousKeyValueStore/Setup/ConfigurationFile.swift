#if !canImport(Darwin)
  internal import Foundation
  internal import Kith

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
