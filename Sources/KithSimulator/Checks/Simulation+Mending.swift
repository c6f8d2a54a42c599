internal import KithCore
internal import KithCrypto

/// A device takes back what is ahead of its mended clock (`Docs/Protocol.md`, "Clocks"): nothing of
/// its own may
/// be lost by that.
extension Simulation {
  /// What a device has before an input that may mend its clock; nothing where none can.
  func seenAhead(
    by device: SimulatedDevice, _ input: Input, at instant: Instant
  ) -> [StoreIdentifier: StoreInspection] {
    let mayMend =
      switch input {
      // Another's time may be taken over.
      case .connected: true
      case .tick, .clockStatus:
        device.replica?.hybridClock.milliseconds ?? 0 > instant.wallMilliseconds + 60_000
          || device.replica?.isTimeAdopted == true
      // A stranger may prove to be a member.
      case .received: device.isClockSynchronised == false
      default: false
      }
    guard mayMend, let replica = device.replica else { return [:] }
    var seen: [StoreIdentifier: StoreInspection] = [:]
    for store in replica.storeIdentifiers { seen[store] = replica.inspect(store) }
    return seen
  }

  func checkMending(
    of device: SimulatedDevice, from before: [StoreIdentifier: StoreInspection],
    _ effects: [Effect]
  ) throws(Violation) {
    let isMended = effects.contains { effect in
      if case .report(.mended) = effect { true } else { false }
    }
    guard isMended, let replica = device.replica else { return }
    for (store, before) in before.sorted(by: { $0.key < $1.key }) {
      guard let after = replica.inspect(store) else { continue }
      var refused: [Refusal] = []
      for case .refusals(store, let some) in effects { refused += some }
      let loss = history.restamp(
        on: device.number, author: device.keys.id, in: store, from: before, to: after,
        refused: refused, notAfter: latestAccepted)
      if let loss { throw Violation(.nothingLost, loss) }
    }
  }
}
