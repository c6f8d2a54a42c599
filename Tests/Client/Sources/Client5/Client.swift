import Foundation
import KithTesting
import UbiquitousKeyValueStore

@main struct Client {
  @MainActor static func main() throws {
    // Whatever waits for itself ends here, and fails.
    alarm(120)
    let checks = Checks()
    let account = try TestAccount(devices: 1)
    let store = try UbiquityBootstrap.makeStore(on: account[0].store("com.example.Client"))
    Shapes(checks: checks, store: store).runAll()
    try Notifications(checks: checks).runAll()
    print("\(checks.passed) hold, \(checks.failed) do not")
    exit(checks.failed == 0 ? 0 : 1)
  }
}
