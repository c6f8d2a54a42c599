import Foundation

/// Text and bytes that a person hands in: a file, or standard input for `-`.
enum InputText {
  /// The most bytes that are read, so that an endless stream fills no memory.
  static let limit = 64 << 20

  /// All bytes of a file, or of standard input for `-`.
  static func data(of name: String) throws -> Data {
    guard name == "-" else {
      // A directory, too, would give an error, but not a helpful one.
      var isDirectory: ObjCBool = false
      if FileManager.default.fileExists(atPath: name, isDirectory: &isDirectory),
        isDirectory.boolValue
      {
        throw CommandFailure(.failure, "\(name): this is a directory; name a file")
      }
      return try Data(contentsOf: URL(filePath: name))
    }
    let data = try FileHandle.standardInput.read(upToCount: limit + 1) ?? Data()
    guard data.count <= limit else {
      throw CommandFailure(.refused, "standard input has more than \(Humane.bytes(limit))")
    }
    return data
  }

  /// All text of standard input, without the line end that shells add.
  static func text(of name: String) throws -> String {
    guard var text = String(validating: try data(of: name), as: UTF8.self) else {
      throw CommandFailure(.refused, "the input is not valid UTF-8; give data with --type data")
    }
    if text.hasSuffix("\r\n") || text.hasSuffix("\n") { text.removeLast() }
    return text
  }

  /// The first line with something on it, without white space around it. Standard input is read
  /// only as far as needed.
  static func line(of name: String) throws -> String {
    var lines: [String] = []
    if name == "-" {
      if let line = readLine() { lines = [line] }
    } else {
      lines = try text(of: name).split(separator: "\n").map(String.init)
    }
    let trimmed = lines.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
    guard let line = trimmed.first(where: { !$0.isEmpty }) else {
      throw CommandFailure(.refused, "\(name == "-" ? "standard input" : name) is empty")
    }
    return line
  }
}
