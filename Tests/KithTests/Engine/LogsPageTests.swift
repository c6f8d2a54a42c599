import Foundation
import Testing

@testable import Kith

/// Docs/Logs.md has each line of the usual levels, each metric, and no other.
@Suite("Docs/Logs.md")
struct LogsPageTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  private static func sources(_ module: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(
      atPath: root.appending(path: "Sources/\(module)").path
    )
    .filter { $0.hasSuffix(".swift") }
    .map { try text("Sources/\(module)/\($0)") }
  }

  @Test func `the page has the lines that the code logs`() throws {
    let row = #/^\| (debug|info|notice|warning|error) \| (.*?) \|/#.anchorsMatchLineEndings()
    let page = try Self.text("Docs/Logs.md").matches(of: row).map { "\($0.1): \($0.2)" }
    var logged = Set(LogLine.Message.allCases.map { "\($0.level): \($0.rawValue)" })
    // A text that begins with an interpolation is a setting's own.
    let call = #/[lL]ogger\.(info|notice|warning|error)\(\s*"([^"\\][^"]*)"/#
    for module in ["Kith", "KithNetwork", "UbiquitousKeyValueStore"] {
      for source in try Self.sources(module) {
        logged.formUnion(source.matches(of: call).map { "\($0.1): \($0.2)" })
      }
    }
    #expect(Set(page).subtracting(logged) == [], "the code does not log these")
    #expect(logged.subtracting(page) == [], "the page lacks these")
    #expect(page.count == Set(page).count)
  }

  @Test func `the page has the metrics that the code counts`() throws {
    let row = #/^\| `(kith_\w+)` \| (counter|timer) \|/#.anchorsMatchLineEndings()
    let page = try Self.text("Docs/Logs.md").matches(of: row).map { "\($0.2) \($0.1)" }
    let made = try Self.text("Sources/Kith/Engine/Metrics.swift")
      .matches(of: #/(Counter|Timer)\(label: "(\w+)"/#)
      .map { "\($0.1.lowercased()) \($0.2)" }
    #expect(page.sorted() == made.sorted())
  }
}
