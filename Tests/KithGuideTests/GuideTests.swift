import Foundation
import Testing

/// The code that README and the guides show is code that the tests and `Examples` compile.
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

  /// Lines without what the formatter decides: indentation and the space before comments.
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

  @Test func `all code of the guides is compiled`() throws {
    let folder = "Sources/Kith/Kith.docc"
    let pages = try FileManager.default.contentsOfDirectory(
      atPath: Self.root.appending(path: folder).path
    ).filter { $0.hasSuffix(".md") }.map { folder + "/" + $0 }
    #expect(pages.count >= 6)
    let compiled = Self.lines(try Self.text("Tests/KithGuideTests/Snippets.swift"))
      .joined(separator: "\n")
    var count = 0
    for page in pages.sorted() + ["README.md"] {
      // The first two of README, and the first of the reference, are programs of their own.
      let programs = page == "README.md" ? 2 : page.hasSuffix("/Kith.md") ? 1 : 0
      for block in try Self.blocks(page).dropFirst(programs) {
        for paragraph in Self.lines(block).split(separator: "") {
          let code = paragraph.joined(separator: "\n")
          count += 1
          #expect(compiled.contains(code), "\(page) shows what is not compiled:\n\(code)")
        }
      }
    }
    #expect(count >= 20)
  }
}
