import Kith
import KithCore
import KithTerminal

/// Follows a new carrier until it holds everything, and says how far it is.
struct FirstDeposit {
  private static let look = Duration.milliseconds(500)

  let console: Console
  let limit: Duration

  /// Returns the carrier's last status; nil if no node uses it.
  func follow(
    _ settings: CarrierSettings, on node: any NodeAccess
  ) async throws -> NodeStatus.Carrier? {
    let end = ContinuousClock.now + limit
    let start = Moment.now
    var told: String?
    while true {
      let status = try await node.report()
      guard status.isRunning else { return nil }
      let carrier = status.carriers.first {
        $0.kind == settings.kind && $0.location == settings.location
      }
      // The status may still have a problem of before.
      let hasFailed = carrier?.problemMilliseconds.map { $0 >= start } == true
      let isDone = carrier?.heldSinceMilliseconds != nil && carrier?.problem == nil || hasFailed
      if isDone || ContinuousClock.now >= end { return carrier }
      let line = carrier.map {
        $0.objects == 0
          ? "Putting everything there…"
          : "Putting everything there: \(Humane.count($0.objects, "object")), \(Humane.bytes($0.bytes))…"
      }
      if let line, line != told { console.talk(line) }
      told = line ?? told
      try await node.lookAtCarriers()
      try await Task.sleep(for: Self.look)
    }
  }
}
