import Foundation
import Kith
import Testing

@testable import KithCommands

@Suite("Writing what a file holds")
struct ImportRunTests {
  private func entries(_ count: Int, bytes: Int = 10) -> [ImportedFile.Entry] {
    (0..<count).map { index in
      ImportedFile.Entry(key: "k\(index)", value: .string(String(repeating: "x", count: bytes)))
    }
  }

  @Test func `in commits of a sensible size`() {
    #expect(ImportRun.chunks(of: entries(264)).map(\.count) == [64, 64, 64, 64, 8])
    #expect(ImportRun.chunks(of: entries(5, bytes: 60_000)).map(\.count) == [2, 2, 1])
    #expect(ImportRun.chunks(of: entries(2, bytes: 600_000)).map(\.count) == [1, 1])
    #expect(ImportRun.chunks(of: []).isEmpty)
  }

  @Test func `refused keys are found, all others are written`() async throws {
    var run = ImportRun()
    var written: [String] = []
    let bad = ["k3": KithError.Code.invalidKey, "k70": .quotaExceeded, "k71": .valueTooLarge]
    try await run.write(entries(100)) { chunk in
      written += chunk.map(\.key).filter { bad[$0] == nil }
      return chunk.map { entry in bad[entry.key].map { KithError($0, "no", key: .init(entry.key)) }
      }
    }
    #expect(written == run.imported)
    #expect(run.imported == (0..<100).map { "k\($0)" }.filter { bad[$0] == nil })
    #expect(run.refused.map(\.key) == ["k3", "k70", "k71"])
    #expect(run.refused.map(\.code) == ["invalidKey", "quotaExceeded", "valueTooLarge"])
  }

  @Test func `any other error ends the import`() async throws {
    var run = ImportRun()
    await #expect(throws: KithError.self) {
      try await run.write(entries(3)) { _ in [KithError(.diskFull, "full"), nil, nil] }
    }
    #expect(run.imported.isEmpty && run.refused.isEmpty)
  }

  @Test func `a dry run refuses what the store would`() async throws {
    var deep: PropertyListValue = 1
    for _ in 0..<65 { deep = [deep] }
    let many =
      entries(6) + [
        .init(key: String(repeating: "k", count: 65), value: 1), .init(key: "", value: 1),
        .init(key: "deep", value: deep),
        .init(key: "large", value: .string(String(repeating: "x", count: 1 << 20))),
        .init(key: "half", value: .string(String(repeating: "x", count: 600_000))),
        .init(key: "other half", value: .string(String(repeating: "x", count: 600_000))),
      ]
    var run = ImportRun()
    var trial = TrialStore()
    try await run.write(many) { chunk in trial.write(each: chunk.map { [($0.key, $0.value)] }) }
    #expect(run.imported == (0..<6).map { "k\($0)" } + ["half"])
    #expect(
      run.refused.map(\.code) == [
        "invalidKey", "invalidKey", "unsupportedValue", "valueTooLarge", "quotaExceeded",
      ])
    try trial.write([
      ("half", nil), ("other half", .string(String(repeating: "x", count: 600_000))),
    ])
  }

  @Test func `the summary names what was refused`() {
    let summary = ImportSummary(
      file: "a.json", format: .json, imported: 2,
      refused: [.init(key: "key", code: "notAValue", reason: "too long")], isDryRun: false,
      seconds: 0.0123)
    #expect(
      summary.text(.plain) == """
        2 keys imported from a.json (json) in 12.30 ms
        1 key refused:
         key  too long
        """)
    let long = String(repeating: "org.gnome.desktop.", count: 5) + "key"
    var other = summary
    other.refused[0].code = "invalidKey"
    other.refused[0].key = long
    #expect(
      other.text(.plain).hasSuffix(
        """
         \(long)  too long
        1 key would fit in a new store for longer keys: --store NAME --key-bytes 93
        """))
    // No store takes these.
    for key in ["", String(repeating: "k", count: 1_025)] {
      other.refused[0].key = key
      #expect(!other.text(.plain).contains("--key-bytes"))
    }
    #expect(
      summary.document.text(indented: false)
        == #"{"dryRun":false,"file":"a.json","format":"json","imported":2,"#
        + #""refused":[{"code":"notAValue","key":"key","reason":"too long"}],"#
        + #""seconds":0.0123,"version":1}"#)
  }
}
