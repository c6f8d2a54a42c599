import Foundation
import Testing

@Suite struct LinkedLibrariesTests {
  /// All of Foundation would bring the 41 MB of ICU into each process
  /// (`Docs/Decisions/sqlite-and-foundation.md`).
  @Test func `the tool needs only the essentials of Foundation`() throws {
    let program = try Data(contentsOf: KithProcess.program, options: .alwaysMapped)
    func needs(_ library: String) -> Bool { program.range(of: Data("\(library)\0".utf8)) != nil }
    #expect(needs("libc.so.6"))
    #expect(!needs("libFoundation.so"))
  }
}
