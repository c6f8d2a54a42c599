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
  /// | `passphraseFile` | a path, as `directory` | from code or the environment, or none |
  struct ConfigurationFile: Equatable, Sendable {
    static let fileName = "kith.json"
    /// In bytes.
    static let sizeLimit = 1 << 16

    var storeIdentifier: String?
    var directory: String?
    var hosts: [String]?
    var port: UInt16?
    var peers: [String]?
    var discoversPeers: Bool?
    var passphraseFile: String?

    /// The reason why an existing file cannot be used.
    struct Malformed: Error, Equatable, CustomStringConvertible {
      var description: String
    }

    /// Reads the file's bytes. `base` is its directory. An unknown member, which may be mistyped,
    /// is an error.
    init(_ data: Data, base: String, home: String) throws(Malformed) {
      guard data.count <= Self.sizeLimit else {
        throw Malformed(description: "it has more than \(Self.sizeLimit) bytes")
      }
      guard let object = try? JSONSerialization.jsonObject(with: data),
        case .dictionary(let members)? = try? PropertyListValue(foundationObject: object)
      else { throw Malformed(description: "it is no JSON object") }
      for (key, value) in members.sorted(by: { $0.key < $1.key }) {
        switch key {
        case "storeIdentifier": storeIdentifier = try Self.text(value, key)
        case "directory":
          directory = Self.path(try Self.text(value, key), base: base, home: home)
        case "passphraseFile":
          passphraseFile = Self.path(try Self.text(value, key), base: base, home: home)
        case "hosts": hosts = try Self.texts(value, key)
        case "peers": peers = try Self.texts(value, key)
        case "port":
          guard case .integer(let number) = value, let port = UInt16(exactly: number) else {
            throw Malformed(description: "\"port\" is no number from 0 to 65535")
          }
          self.port = port
        case "discoversPeers":
          guard case .bool(let isOn) = value else {
            throw Malformed(description: "\"discoversPeers\" is neither true nor false")
          }
          discoversPeers = isOn
        default: throw Malformed(description: "\"\(key)\" means nothing")
        }
      }
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
