import Foundation
import Testing

/// The code that README, the guides and `Docs` show is code that the tests and `Examples` compile.
@Suite struct GuideTests {
  private static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The Swift blocks of a page, without their fences.
  private static func blocks(_ path: String) throws -> [String] {
    try text(path).components(separatedBy: "```swift\n").dropFirst().map {
      $0.components(separatedBy: "```")[0]
    }
  }

  /// Lines without indentation and the space before comments, which the formatter decides.
  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
  }

  @Test(arguments: [
    (0, "Examples/Sources/ReadmeModern/main.swift"),
    (1, "Examples/Sources/ReadmeClassic/main.swift"),
  ])
  func `the programs of README are whole, and are built with the examples`(
    block: Int, path: String
  ) throws {
    let blocks = try Self.blocks("README.md")
    #expect(try #require(blocks.dropFirst(block).first) == (try Self.text(path)))
  }

  @Test func `the reference opens with the program of README`() throws {
    #expect(try Self.blocks("Sources/Kith/Kith.docc/Kith.md").first == Self.blocks("README.md")[0])
  }

  /// The files of a folder and of those in it, by their ending.
  private static func files(_ folder: String, _ ending: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
      .filter { $0.hasSuffix(ending) }.map { "\(folder)/\($0)" }.sorted()
  }

  /// Whether a text has some code. In the code `…` stands for anything without braces.
  private static func has(_ text: String, _ code: String) throws -> Bool {
    let pattern = code.components(separatedBy: "…")
      .map { NSRegularExpression.escapedPattern(for: $0) }.joined(separator: "[^{}]*")
    return try NSRegularExpression(pattern: pattern)
      .firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
  }

  @Test func `all code of the guides is compiled`() throws {
    let compiled = try Self.files("Tests/KithGuideTests", ".swift")
      .filter { !$0.hasSuffix("/GuideTests.swift") }
      .flatMap { Self.lines(try Self.text($0)) }.joined(separator: " ")
    let pages = try Self.files("Sources", ".md") + Self.files("Docs", ".md") + ["README.md"]
    var shown: Set<String> = []
    var count = 0
    for page in pages {
      // The first two of README, and the first of the reference, are programs of their own.
      let programs = page == "README.md" ? 2 : page.hasSuffix("/Kith.md") ? 1 : 0
      for block in try Self.blocks(page).dropFirst(programs) {
        for paragraph in Self.lines(block).split(separator: "") {
          count += 1
          shown.insert(page)
          #expect(
            try Self.has(compiled, paragraph.joined(separator: " ")),
            "\(page) shows what is not compiled:\n\(paragraph.joined(separator: "\n"))")
        }
      }
    }
    #expect(shown.count >= 11 && count >= 40, "\(shown.count) pages, \(count) paragraphs")
  }
}
