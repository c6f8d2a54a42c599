import Foundation
import KithTerminal
import Testing

@testable import KithCommands

/// The program without the page. `KithWebTests` and `Tests/browser` test the page.
@Suite("The page's program", .timeLimit(.minutes(5)))
struct WebCommandTests {
  @Test func `kith web says which program has the page, if that is not there`() async throws {
    let household = try Household()
    let program = household.root.appending(path: "kith")
    try FileManager.default.copyItem(at: KithProcess.program, to: program)
    let command = try KithProcess(
      command: [program.path, "web", "--directory", household.root.path + "/none"],
      in: household.root)
    let result = try await command.wait()
    #expect(result.status == CommandStatus.failure.rawValue)
    #expect(
      result.output.isEmpty && result.talk.contains("swift build --traits Web --product kith-web"))
  }
}
