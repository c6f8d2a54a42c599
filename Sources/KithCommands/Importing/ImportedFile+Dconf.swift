import Foundation
import KithCore

extension ImportedFile {
  /// Takes the keys of a key file with values in GVariant's text format. A key is its section's path,
  /// a slash, and its name: `org/gnome/desktop/interface/clock-format`. Under `[/]` it is only the
  /// name.
  mutating func takeDconf(_ data: Data) throws(ImportError) {
    var section: String?
    var lineOfKey: [Key: Int] = [:]
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
        section = text.dropFirst().dropLast().split(separator: "/").joined(separator: "/")
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
      if let first = lineOfKey.updateValue(number, forKey: Key(key)) {
        add(key) { throw ImportError("line \(number): the key was already given in line \(first)") }
        continue
      }
      let original = String(text[text.index(after: equals)...]).trimmed
      add(key) {
        var reader = GVariantReader(original)
        do throws(ImportError) { return try reader.read() } catch {
          throw ImportError("line \(number): \(error)")
        }
      }
      if let entry = entries.last, entry.key == prefix + key,
        GVariantText.text(entry.value) != original
      {
        texts[entry.key] = original
      }
    }
  }
}

extension String {
  /// Drops the carriage return of Windows, too.
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
