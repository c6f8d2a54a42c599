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

extension TimeKeeper {
  /// The milliseconds by which a member's time is ahead of this device's.
  func offset(of claim: Claim) -> Int64 {
    time(of: claim, at: host) - Int64(clamping: now.wallMilliseconds)
  }

  /// Whether stores may be exchanged with a member of this time.
  ///
  /// A delayed message makes the member seem behind, and a member that is behind learns it itself.
  /// So a clock behind ours is judged only in a handshake and when an exchange begins.
  func agrees(with claim: Claim, isHandshake: Bool) -> Bool {
    let (theirs, ours) = (time(of: claim, at: host), Int64(clamping: now.wallMilliseconds))
    return Self.agree(theirs, ours) || !isHandshake && theirs < ours
      || !Self.isPossible(theirs) || !Self.isPossible(ours)
  }

  /// The outcome of a difference, by whose clock the kernel calls synchronised.
  func outcome(isTheirsSynchronised: Bool) -> NodeStatus.ClockDifference.Outcome {
    switch (isSynchronised, isTheirsSynchronised) {
    case (true, true): .bothSynchronised
    case (false, false): .neitherSynchronised
    case (true, false): .theyAreTooFar
    case (false, true): followed == nil ? .tooFar : .anotherIsNearer
    }
  }
}
