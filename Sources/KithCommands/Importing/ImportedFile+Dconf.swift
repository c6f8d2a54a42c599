import FoundationEssentials
import Kith
import KithCore

extension ImportedFile {
  /// Takes the keys of a key file with values in GVariant's text format. A key is its section's path,
  /// a slash, and its name: `org/gnome/desktop/interface/clock-format`. Under `[/]` it is only the
  /// name.
  ///
  /// Unless it `isCertain` that the file is a dump, a value that is no GVariant text refuses the
  /// whole file: it is an INI file.
  mutating func takeDconf(_ data: Data, isCertain: Bool) throws(ImportError) {
    var section: String?
    var foreign: ImportError?
    for (index, line) in data.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated()
    {
      let number = index + 1
      guard let text = String(validating: line, as: UTF8.self)?.trimmed else {
        throw ImportError("line \(number): the text is not valid UTF-8")
      }
      if text.isEmpty || text.hasPrefix("#") || text.hasPrefix(";") { continue }
      if text.hasPrefix("[") {
        guard text.hasSuffix("]"), text.utf8.count > 2 else {
          throw ImportError("line \(number): a section must be written as [path/of/section]")
        }
        let path = text.dropFirst().dropLast()
        guard !path.contains("["), !path.contains("]") else {
          throw ImportError(
            "line \(number): no section of dconf is \(text.prefix(80)); this is an INI file")
        }
        section = path.split(separator: "/").joined(separator: "/")
        continue
      }
      guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
        throw ImportError("line \(number): expected [section] or key=value")
      }
      guard let section else {
        throw ImportError("line \(number): a key stands before the first [section]")
      }
      let name = String(text[..<equals]).trimmed
      let key = section.isEmpty ? name : section + "/" + name
      var form: PropertyListValue?
      add(key) {
        var reader = GVariantReader(String(text[text.index(after: equals)...]).trimmed)
        do throws(ImportError) {
          let read = try reader.read()
          form = read.form
          return read.value
        } catch {
          let error = ImportError("line \(number): \(error)", isText: error.isText)
          if !error.isText { foreign = foreign ?? error }
          throw error
        }
      }
      forms[Key(prefix + key)] = form
    }
    if let foreign, !isCertain {
      throw ImportError(
        "the file is no dump of dconf, but perhaps an INI file: \(foreign). If it is a damaged dump, "
          + "--format dconf imports the other keys")
    }
  }
}

/// The forms of values that came from dconf dumps (``GVariantText``), by store and key.
///
/// They are in a store of the account's own: in the user's, they would take the place of values, and
/// a value would not be what a program reads.
enum DconfTypes {
  static let store = "kith.dconf"
  private static let policy = Policy.maximum
  private static let keysPerCommit = 64

  static func forms(
    of store: String, at node: any NodeAccess
  ) async throws(KithError) -> [Key: PropertyListValue] {
    let prefix = prefix(store).utf8
    var forms: [Key: PropertyListValue] = [:]
    let all = try await node.values(in: Self.store)
    for (key, form) in all where key.text.utf8.starts(with: prefix) {
      forms[Key(String(decoding: key.text.utf8.dropFirst(prefix.count), as: UTF8.self))] = form
    }
    return forms
  }

  /// Keeps the forms of a file's values, and drops those of keys that are gone; durable on return.
  static func keep(_ file: ImportedFile, of store: String, at node: any NodeAccess) async throws {
    let writes = try await writes(file, store, node)
    for start in stride(from: 0, to: writes.count, by: keysPerCommit) {
      let some = writes[start..<min(start + keysPerCommit, writes.count)].map { [$0] }
      let refused = try await node.write(each: some, in: Self.store, policy: policy)
      if let error = refused.compactMap(\.self).first { throw error }
    }
  }

  /// Throws as ``keep(_:of:at:)`` would, and writes nothing.
  static func rehearse(_ file: ImportedFile, of store: String, at node: any NodeAccess) async throws
  {
    var usage = try await node.usage(of: Self.store)
    usage.policy = policy
    var trial = TrialStore(values: try await node.values(in: Self.store), usage: usage)
    try trial.write(try await writes(file, store, node))
  }

  private static func writes(
    _ file: ImportedFile, _ store: String, _ node: any NodeAccess
  ) async throws(KithError) -> [(key: String, value: PropertyListValue?)] {
    let old = try await forms(of: store, at: node)
    let shown = try await node.values(in: store)
    // Of a value with its usual type, the form says nothing.
    var new = old.filter { shown[$0.key] != nil }
    for entry in file.entries {
      let form = file.forms[Key(entry.key)]
      let isPlain =
        GVariantText.isDefault(entry.value)
        && form == .string(GVariantText.defaultType(entry.value))
      new[Key(entry.key)] = isPlain ? nil : form
    }
    return Set(old.keys).union(new.keys).sorted().filter { old[$0] != new[$0] }
      .map { (prefix(store) + $0.text, new[$0]) }
  }

  /// No store's name has a line feed.
  private static func prefix(_ store: String) -> String { store + "\n" }
}
