package import FoundationEssentials
package import Kith
import KithCore
import KithValues

/// The values of a settings file that can be stored, and the reasons for the others.
package struct ImportedFile: Sendable {
  struct Entry: Equatable {
    let key: String
    let value: PropertyListValue
  }

  let format: ImportFormat
  /// Text before every key.
  let prefix: String
  /// In the order of the file, or of a property list by the keys' UTF-8 bytes. No key occurs twice.
  /// The store's limits are not checked here.
  var entries: [Entry] = []
  /// In the same order, and then the keys that occur more than once.
  var skipped: [ImportSummary.Refused] = []
  /// The forms of a dconf dump's values (``GVariantText``).
  var forms: [Key: PropertyListValue] = [:]
  /// How often the file has each key, with the prefix.
  private var occurrences: [Key: Int] = [:]

  /// A nil format is detected. Throws ``ImportError`` if the file as a whole cannot be read.
  package init(_ data: Data, as format: ImportFormat? = nil, prefix: String = "") throws {
    let data = try ImportFormat.utf8(data)
    self.format = try format ?? ImportFormat.detect(data)
    self.prefix = prefix
    switch self.format {
    case .json: try readJSON(data)
    case .plist: try readPropertyList(data)
    case .dconf: try readDconf(data, isCertain: format != nil)
    }
    refuseRepeated()
  }

  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    let key = prefix + key
    occurrences[Key(key), default: 0] += 1
    do {
      entries.append(Entry(key: key, value: try value()))
    } catch {
      skipped.append(.init(key: key, code: "notAValue", reason: "\(error)"))
    }
  }

  /// Skips keys that occur more than once, in all formats alike: programs differ in which of the values
  /// they take.
  private mutating func refuseRepeated() {
    let repeated = Set(occurrences.lazy.filter { $0.value > 1 }.map(\.key))
    guard !repeated.isEmpty else { return }
    entries.removeAll { repeated.contains(Key($0.key)) }
    skipped.removeAll { repeated.contains(Key($0.key)) }
    skipped += repeated.sorted().map { key in
      .init(
        key: key.text, code: "notAValue",
        reason: "the file has the key \(occurrences[key] ?? 2) times; none of its values is taken")
    }
  }
}

/// A file, or a value of it, cannot be imported.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// For people: the mistake, its position, and the remedy.
  let description: String
  /// Whether the text is of its format, but no value has its content.
  let isText: Bool

  init(_ description: String, isText: Bool = false) {
    self.description = description
    self.isText = isText
  }
}

package enum ImportFormat: String, CaseIterable, Sendable {
  /// JSON, with or without the comments that editors allow.
  case json
  /// XML or binary.
  case plist
  /// The output of `dconf dump /`.
  case dconf

  /// Detects the format from the content alone.
  static func detect(_ data: Data) throws(ImportError) -> ImportFormat {
    if data.starts(with: Array("bplist".utf8)) { return .plist }
    if data.starts(with: Array("GVariant".utf8)) {
      throw ImportError(
        "this is dconf's binary database; run `dconf dump / > settings.dconf` and import that file")
    }
    var content = data[...]
    if content.starts(with: [0xEF, 0xBB, 0xBF]) { content = content.dropFirst(3) }
    content = content.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    switch content.first {
    case UInt8(ascii: "<"): return .plist
    case UInt8(ascii: "{"), UInt8(ascii: "/"): return .json
    case UInt8(ascii: "#"), UInt8(ascii: ";"): return .dconf
    case UInt8(ascii: "["): return isSection(content.prefix { $0 != 0x0A }) ? .dconf : .json
    case UInt8(ascii: "("): throw .oldPropertyList
    case nil: throw ImportError("the file is empty")
    default:
      throw ImportError(
        "the file is neither a JSON object, nor a property list (XML or binary), nor the text of "
          + "`dconf dump`")
    }
  }

  /// Returns UTF-16 with a byte-order mark in UTF-8, and all else unchanged.
  static func utf8(_ data: Data) throws(ImportError) -> Data {
    let bytes = Array(data)
    if bytes.starts(with: [0xFF, 0xFE, 0, 0]) || bytes.starts(with: [0, 0, 0xFE, 0xFF]) {
      throw ImportError("the encoding is UTF-32; convert it: iconv -f UTF-32 -t UTF-8")
    }
    let isBig = bytes.starts(with: [0xFE, 0xFF])
    guard isBig || bytes.starts(with: [0xFF, 0xFE]) else {
      guard !bytes.prefix(2).contains(0) else {
        throw ImportError(
          "the encoding seems to be UTF-16 without a byte-order mark; convert it: "
            + "iconv -f UTF-16\(bytes[0] == 0 ? "BE" : "LE") -t UTF-8")
      }
      return data
    }
    let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
      let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      return isBig ? first << 8 | second : second << 8 | first
    }
    guard bytes.count.isMultiple(of: 2), let text = String(validating: units, as: UTF16.self) else {
      throw ImportError("the text is not valid UTF-16")
    }
    return Data(text.utf8)
  }

  /// Whether a line is `[org/gnome/desktop]` or, in INI files, `[a][b]`, and not a JSON array.
  private static func isSection(_ line: Data) -> Bool {
    let text = String(decoding: line, as: UTF8.self).trimmed
    guard text.hasSuffix("]") else { return false }
    let name = text.dropFirst().dropLast()
    if name.contains("][") { return true }
    let isNumber = Double(name) != nil || ["true", "false", "null"].contains(name)
    return !name.isEmpty && !isNumber && !name.contains { "\"[]{},".contains($0) }
  }
}

extension ImportedFile {
  /// Takes one key for each member of the object.
  mutating func readJSON(_ data: Data) throws(ImportError) {
    let root: JSONNode
    do throws(JSONSyntaxError) {
      var reader = JSONReader(Array(data), isFile: true)
      root = try reader.read()
    } catch {
      if Self.isOldPropertyList(data) { throw .oldPropertyList }
      throw ImportError("the file is not valid JSON: \(error)")
    }
    guard case .object(let members) = root else {
      throw ImportError(
        "line 1: the file holds \(root.kindName) where an object with one member a key is needed: "
          + "{\"key\": value, …}")
    }
    // `kith export` uses this form for a store whose keys look like another document.
    let entries: [JSONMember]
    if members.count == 1, members[0].key == ValueJSON.Tag.dictionary.rawValue,
      case .object(let inner) = members[0].value
    {
      entries = inner
    } else {
      entries = try Self.values(of: members)
    }
    for member in entries {
      add(member.key) { try ValueJSON.value(member.value) }
    }
  }

  /// Returns the `values` of a document of `kith export --json`, which is told by its `format`;
  /// otherwise the object's own members. Throws if the document is damaged or of an unknown version.
  private static func values(of members: [JSONMember]) throws(ImportError) -> [JSONMember] {
    func member(_ key: String) throws(ImportError) -> JSONNode? {
      let found = members.filter { $0.key == key }
      guard found.count <= 1 else {
        throw ImportError("this export has the member \"\(key)\" twice")
      }
      return found.first?.value
    }
    guard
      members.contains(where: { $0.key == "format" && $0.value == .string(ExportDocument.format) })
    else { return members }
    guard case .number(let version)? = try member("version") else {
      throw ImportError("this export is damaged: its \"version\" is missing, or no number")
    }
    guard version == "\(Document.version)" else {
      throw ImportError("this export was written by a newer version of kith; update kith first")
    }
    guard case .object(let values)? = try member("values") else {
      throw ImportError("this export is damaged: its \"values\" are missing, or no object")
    }
    return values
  }
}

extension ImportedFile {
  /// Whether a text has assignments, as `defaults read` prints.
  private static func isOldPropertyList(_ data: Data) -> Bool {
    let text = String(decoding: data.prefix(4_096), as: UTF8.self)
    return text.contains(#/[{;(]\s*("[^"]*"|[\w.$\/-]+)\s*=[^=]/#)
  }
}

extension ImportError {
  static let oldPropertyList = ImportError(
    "this is the old text form of a property list, which `defaults read` prints; convert it with "
      + "`plutil -convert xml1`, or save it with `defaults export`")
}

extension JSONNode {
  /// The kind's name, with its article.
  fileprivate var kindName: String {
    switch self {
    case .null: "null"
    case .bool: "a bool"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

/// The way into a store: for `kith import`, and for the page of `kith web`.
extension ImportedFile {
  /// Writes what the store takes, durably. `progress` gets the number of finished keys.
  package func write(
    to store: String, at node: any NodeAccess,
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws -> ImportSummary {
    let start = ContinuousClock.now
    // Before the values: a device that gets these has the types already.
    let warning = try await warning { try await DconfTypes.save(self, of: store, at: node) }
    let trial = TrialStore(
      values: try await node.values(in: store), usage: try await node.usage(of: store))
    var run = ImportRun(progress: progress)
    try await run.write(entries, trial: trial) { chunk in
      try await node.write(each: chunk.map { [($0.key, $0.value)] }, in: store)
    }
    return summary(run, warning, isDryRun: false, since: start)
  }

  /// Writes nothing, and returns what ``write(to:at:progress:)`` would. `keyBytes` is the limit of a
  /// store that is still to be created.
  package func rehearse(
    _ store: String, at node: any NodeAccess, keyBytes: Int? = nil
  ) async throws -> ImportSummary {
    let start = ContinuousClock.now
    var usage = try await node.usage(of: store)
    if let keyBytes { usage.policy.keyBytes = max(usage.policy.keyBytes, keyBytes) }
    var trial = TrialStore(values: try await node.values(in: store), usage: usage)
    var run = ImportRun()
    try await run.write(entries) { chunk in trial.write(each: chunk.map { [($0.key, $0.value)] }) }
    let warning = try await warning { try await DconfTypes.rehearse(self, of: store, at: node) }
    return summary(run, warning, isDryRun: true, since: start)
  }

  /// Returns why the types of a dump are not kept; the values are imported nevertheless.
  private func warning(_ keepTypes: () async throws -> Void) async throws -> String? {
    guard format == .dconf, !entries.isEmpty else { return nil }
    do {
      try await keepTypes()
      return nil
    } catch let error as KithError where error.isRefusal || error.code == .tooManyStores {
      return
        "the types of some values are not kept, so kith export --format dconf writes the usual ones: "
        + error.message
    }
  }

  private func summary(
    _ run: ImportRun, _ warning: String?, isDryRun: Bool, since start: ContinuousClock.Instant
  ) -> ImportSummary {
    ImportSummary(
      format: format, imported: run.imported.count, refused: skipped + run.refused,
      warning: warning, isDryRun: isDryRun, seconds: (ContinuousClock.now - start) / .seconds(1))
  }
}
