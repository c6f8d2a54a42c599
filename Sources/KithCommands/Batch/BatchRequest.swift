import Kith
import KithTerminal
import KithValues

/// A request of `kith batch`, read strictly: an unknown member is an error.
struct BatchRequest {
  enum Action {
    case get(key: String)
    /// Nil removes a key.
    case write([(key: String, value: PropertyListValue?)])
    case remove(keys: [String])
    case list(prefix: String)
    case watch(keys: [String])
    /// `devices`: how many must have the writes; nil: all.
    case sync(seconds: Double, devices: Int?)
    case status
  }

  /// A string or an integer.
  let id: PropertyListValue?
  private let members: [JSONMember]

  init(_ line: [UInt8]) throws(CommandFailure) {
    var reader = JSONReader(line)
    let node: JSONNode
    do throws(JSONSyntaxError) {
      node = try reader.read()
    } catch {
      throw CommandFailure(.usage, "\(error)")
    }
    guard case .object(let members) = node else {
      throw CommandFailure(
        .usage, "a request is an object, for example: {\"do\": \"get\", \"key\": \"theme\"}")
    }
    switch members.first(where: { $0.key == "id" })?.value {
    case .none: id = nil
    case .some(.string(let text)): id = .string(text)
    case .some(.number(let text)):
      guard let number = Int64(text) else { throw Self.wrongID }
      id = .integer(number)
    default: throw Self.wrongID
    }
    self.members = members.filter { $0.key != "id" }
  }

  private static let wrongID = CommandFailure(
    .usage, "\"id\" must be a string or an integer of 64 bits")

  func action() throws(CommandFailure) -> Action {
    var rest = BatchMembers(members: members)
    let name = try rest.text("do")
    let action: Action
    switch name {
    case "get": action = .get(key: try rest.text("key"))
    case "set":
      let key = try rest.text("key")
      action = .write([(key, try rest.value("value", ofKey: key))])
    case "remove": action = .remove(keys: try rest.texts("keys", isNeeded: true).uniqueKeys)
    case "transaction":
      let removals: [(key: String, value: PropertyListValue?)] =
        try rest.texts("remove").uniqueKeys.map { ($0, nil) }
      let values = try rest.values("set")
      let removed = Set(removals.map { KeyValueStore.Key($0.key) })
      if let both = values.first(where: { removed.contains(KeyValueStore.Key($0.key)) }) {
        throw CommandFailure(
          .usage, "\"set\" and \"remove\" both have \"\(Columns.printable(both.key, limit: 80))\"")
      }
      action = .write(removals + values)
    case "list": action = .list(prefix: try rest.text("prefix", default: ""))
    case "watch":
      let isOfSome = rest.has("keys")
      let keys = try rest.texts("keys")
      guard !isOfSome || !keys.isEmpty else {
        throw CommandFailure(.usage, "\"keys\" is empty; leave it out for all keys")
      }
      action = .watch(keys: keys)
    case "sync":
      action = .sync(
        seconds: try rest.seconds("timeout", default: 5), devices: try rest.count("devices"))
    case "status": action = .status
    default:
      throw CommandFailure(
        .usage,
        "there is no request \"\(Columns.printable(name, limit: 40))\"; there are get, set, remove, "
          + "transaction, list, watch, sync and status")
    }
    if let unknown = rest.members.first?.key {
      throw CommandFailure(
        .usage, "\"\(name)\" has no member \"\(Columns.printable(unknown, limit: 40))\"")
    }
    return action
  }
}

/// The members of a request that were not read yet.
private struct BatchMembers {
  var members: [JSONMember]

  /// Throws if the member is missing and has no default.
  private mutating func take(
    _ name: String, default: JSONNode? = nil
  ) throws(CommandFailure) -> JSONNode {
    if let index = members.firstIndex(where: { $0.key == name }) {
      return members.remove(at: index).value
    }
    guard let `default` else { throw CommandFailure(.usage, "the member \"\(name)\" is missing") }
    return `default`
  }

  func has(_ name: String) -> Bool { members.contains { $0.key == name } }

  mutating func text(_ name: String, default: String? = nil) throws(CommandFailure) -> String {
    guard case .string(let text) = try take(name, default: `default`.map(JSONNode.string)) else {
      throw CommandFailure(.usage, "\"\(name)\" must be a string")
    }
    return text
  }

  /// Empty if the member is missing, unless it is needed.
  mutating func texts(
    _ name: String, isNeeded: Bool = false
  ) throws(CommandFailure) -> [String] {
    let wrong = CommandFailure(.usage, "\"\(name)\" must be an array of strings")
    guard case .array(let nodes) = try take(name, default: isNeeded ? nil : .array([])) else {
      throw wrong
    }
    var texts: [String] = []
    for node in nodes {
      guard case .string(let text) = node else { throw wrong }
      texts.append(text)
    }
    return texts
  }

  mutating func seconds(_ name: String, default: Double) throws(CommandFailure) -> Double {
    guard case .number(let text) = try take(name, default: .number("\(`default`)")),
      let seconds = Double(text), (0...SyncCommand.longestWait).contains(seconds)
    else { throw CommandFailure(.usage, "\"\(name)\" must be 0 to 3600 seconds") }
    return seconds
  }

  /// Nil if the member is missing.
  mutating func count(_ name: String) throws(CommandFailure) -> Int? {
    guard has(name) else { return nil }
    guard case .number(let text) = try take(name), let count = Int(text), count >= 0 else {
      throw CommandFailure(.usage, "\"\(name)\" must be an integer, 0 or more")
    }
    return count
  }

  mutating func value(
    _ name: String, ofKey key: String
  ) throws(CommandFailure) -> PropertyListValue {
    try Self.value(try take(name), ofKey: key)
  }

  /// Empty if the member is missing.
  mutating func values(
    _ name: String
  ) throws(CommandFailure) -> [(key: String, value: PropertyListValue?)] {
    guard case .object(let members) = try take(name, default: .object([])) else {
      throw CommandFailure(.usage, "\"\(name)\" must be an object of keys and values")
    }
    var values: [(key: String, value: PropertyListValue?)] = []
    for member in members {
      values.append((member.key, try Self.value(member.value, ofKey: member.key)))
    }
    return values
  }

  private static func value(
    _ node: JSONNode, ofKey key: String
  ) throws(CommandFailure) -> PropertyListValue {
    do throws(NotAValue) {
      return try ValueJSON.value(node)
    } catch {
      throw CommandFailure(.refused, "\"\(Columns.printable(key, limit: 80))\": \(error)")
    }
  }
}

/// Splits the input of `kith batch` into lines.
struct BatchLines: Sendable {
  /// Bytes of a line, without its line feed. The rest of a longer one is dropped.
  static let limit = 8 << 20

  private var rest: [UInt8] = []
  private var isTooLong = false

  /// Returns the lines that end in these bytes; nil for a line beyond the limit.
  mutating func take(_ bytes: [UInt8]) -> [[UInt8]?] {
    var lines: [[UInt8]?] = []
    var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    while let piece = pieces.popFirst() {
      if rest.count + piece.count > Self.limit { isTooLong = true }
      if isTooLong { rest = [] } else { rest += piece }
      if !pieces.isEmpty { lines.append(end()) }
    }
    return lines
  }

  /// Returns the line so far, as at the end of the input.
  mutating func end() -> [UInt8]? {
    defer { (rest, isTooLong) = ([], false) }
    return isTooLong ? nil : rest
  }
}
