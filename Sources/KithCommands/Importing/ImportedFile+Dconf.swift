import FoundationEssentials
import Kith
import KithCore

extension ImportedFile {
  /// Takes the keys of a key file with values in GVariant's text format. A key is its section's path,
  /// a slash, and its name: `org/gnome/desktop/interface/clock-format`. Under `[/]` it is only the
  /// name.
  ///
  /// Unless it `isCertain` that the file is a dump, the first line that `dconf dump` would write
  /// otherwise refuses the whole file: in TOML and INI files, the same text may be another value.
  mutating func readDconf(_ data: Data, isCertain: Bool) throws(ImportError) {
    let data = data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data
    var section: String?
    for (index, bytes) in data.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated()
    {
      let number = index + 1
      guard let line = String(validating: bytes, as: UTF8.self) else {
        throw ImportError("line \(number): the text is not valid UTF-8")
      }
      let text = line.trimmed
      guard
        isCertain || line.utf8.count == text.utf8.count
          || line.utf8.count == text.utf8.count + 1 && line.utf8.last == 0x0D
      else { throw .notCertain("line \(number): white space around the text") }
      guard let first = text.unicodeScalars.first else { continue }
      if first == "#" || first == ";" {
        guard isCertain else { throw .notCertain("line \(number): a comment") }
        continue
      }
      if first == "[" {
        let path = text.unicodeScalars.dropFirst().dropLast()
        guard text.unicodeScalars.last == "]", !path.isEmpty else {
          throw ImportError("line \(number): a section must be written as [path/of/section]")
        }
        guard !path.contains("["), !path.contains("]") else {
          throw ImportError(
            "line \(number): no section of dconf is \(text.prefix(80)); this is an INI file")
        }
        section = path.split(separator: "/").map(String.init).joined(separator: "/")
        continue
      }
      guard let equals = text.unicodeScalars.firstIndex(of: "="), equals > text.startIndex else {
        throw ImportError("line \(number): expected [section] or key=value")
      }
      guard let section else {
        throw ImportError("line \(number): a key stands before the first [section]")
      }
      let (left, right) = (text[..<equals], text[text.unicodeScalars.index(after: equals)...])
      let (name, value) = (left.trimmed, right.trimmed)
      guard isCertain || left.utf8.count == name.utf8.count && right.utf8.count == value.utf8.count
      else { throw .notCertain("line \(number): white space around =") }
      let key = section.isEmpty ? name : section + "/" + name
      var (form, foreign): (PropertyListValue?, ImportError?)
      add(key) {
        var reader = GVariantReader(value)
        do throws(ImportError) {
          let read = try reader.read()
          if !reader.isCanonical {
            foreign = ImportError("line \(number): `dconf dump` writes this value otherwise")
          }
          form = read.form
          return read.value
        } catch {
          let error = ImportError("line \(number): \(error)", isText: error.isText)
          if !error.isText { foreign = error }
          throw error
        }
      }
      if let foreign, !isCertain { throw .notCertain(foreign.description) }
      forms[Key(prefix + key)] = form
    }
  }
}

extension ImportError {
  fileprivate static func notCertain(_ reason: String) -> ImportError {
    ImportError(
      "this may be TOML or an INI file: \(reason). If it is a dump of dconf: --format dconf")
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

  /// Keeps the forms of a file's values; durable on return.
  static func save(_ file: ImportedFile, of store: String, at node: any NodeAccess) async throws {
    let writes = try await writes(file, store, node)
    var refusal: KithError?
    for start in stride(from: 0, to: writes.count, by: keysPerCommit) {
      let some = writes[start..<min(start + keysPerCommit, writes.count)].map { [$0] }
      let refused = try await node.write(each: some, in: Self.store, policy: policy)
      refusal = refusal ?? refused.compactMap(\.self).first
    }
    if let refusal { throw refusal }
  }

  /// Throws as ``keep(_:of:at:)`` would, and writes nothing.
  static func rehearse(_ file: ImportedFile, of store: String, at node: any NodeAccess) async throws
  {
    let writes = try await writes(file, store, node)
    guard !writes.isEmpty else { return }
    var usage = try await node.usage(of: Self.store)
    usage.policy = policy
    var trial = TrialStore(values: try await node.values(in: Self.store), usage: usage)
    try trial.write(writes)
  }

  private static func writes(
    _ file: ImportedFile, _ store: String, _ node: any NodeAccess
  ) async throws(KithError) -> [(key: String, value: PropertyListValue?)] {
    let old = try await forms(of: store, at: node)
    let present = try await Set(node.values(in: store).keys)
      .union(node.hiddenEntries(in: store).map(\.key))
    let limit = try await node.usage(of: store).policy.keys
    var new = kept(old, present: present, limit: limit)
    // Of a value with its usual type, the form says nothing.
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

  /// Drops the forms of keys that are neither shown nor hidden, once there are more than `limit`: such
  /// a key was removed, or another device's value of it is still to come.
  static func kept(
    _ forms: [Key: PropertyListValue], present: Set<Key>, limit: Int
  ) -> [Key: PropertyListValue] {
    let absent = forms.keys.count { !present.contains($0) }
    return absent > limit ? forms.filter { present.contains($0.key) } : forms
  }

  /// No store's name has a line feed.
  private static func prefix(_ store: String) -> String { store + "\n" }
}
