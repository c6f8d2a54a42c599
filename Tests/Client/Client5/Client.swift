import Foundation
import KithTesting
import UbiquitousKeyValueStore

@main struct Client {
  /// Does what the first argument says; Tests/client knows in which environment.
  @MainActor static func main() throws {
    // A program that waits for itself is ended here, and fails.
    alarm(120)
    let checks = Checks()
    switch CommandLine.arguments.dropFirst().first ?? "shapes" {
    case "shapes":
      let account = try TestAccount(devices: 1)
      let store = try UbiquityBootstrap.makeStore(on: account[0].store("com.example.Client"))
      Shapes(checks: checks, store: store).runAll()
      try Notifications(checks: checks).runAll()
      try Ported(checks: checks).runAll()
    case "default":
      Shapes(checks: checks, store: .default).runAll()
      Programs(checks: checks).first()
    case "again": Programs(checks: checks).again()
    case "leave": Programs(checks: checks).leave(CommandLine.arguments.last ?? "")
    case "left": Programs(checks: checks).left(CommandLine.arguments.last ?? "")
    case "unconfigured": Programs(checks: checks).unconfigured()
    case "code": try Programs(checks: checks).code()
    case "unusable": Programs(checks: checks).unusable()
    case "host": Neighbours(checks: checks).host()
    case "guest": Neighbours(checks: checks).guest()
    case "crowd": Neighbours(checks: checks).crowd(CommandLine.arguments.last ?? "")
    case "last":
      checks.expect(NSUbiquitousKeyValueStore.default.longLong(forKey: "alone") == 99)
    case "benchmark":
      alarm(0)
      Task {
        do { try await Benchmark().run() } catch { fatalError("\(error)") }
        exit(0)
      }
      RunLoop.main.run()
    case let mode: fatalError("there is no mode \(mode)")
    }
    print("\(checks.passed) hold, \(checks.failed) do not")
    exit(checks.failed == 0 ? 0 : 1)
  }
}
