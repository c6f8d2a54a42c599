import Foundation
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

extension String {
  /// Drops the carriage return of Windows, too.
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
