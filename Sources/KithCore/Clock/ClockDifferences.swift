/// The members whose clocks differed too much, when they were last heard, to exchange stores.
struct ClockDifferences: Sendable {
  private var known: [DeviceID: NodeStatus.ClockDifference] = [:]

  /// By device.
  var all: [NodeStatus.ClockDifference] { known.values.sorted { $0.device < $1.device } }

  /// Returns whether this is news: its outcome is another than before.
  mutating func note(_ difference: NodeStatus.ClockDifference) -> Bool {
    let old = known.updateValue(difference, forKey: difference.device)
    return old?.outcome != difference.outcome
  }

  /// Returns whether the clocks differed before.
  mutating func agree(with device: DeviceID) -> Bool {
    known.removeValue(forKey: device) != nil
  }
}
