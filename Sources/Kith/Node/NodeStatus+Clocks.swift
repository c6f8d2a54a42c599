internal import KithCore

extension NodeStatus {
  /// What is wrong with the time, and what to do: of each device whose clock differs, by how much,
  /// which of the two is called synchronised, and what follows; and whether what is stored here is
  /// ahead of the time, so that peers refuse it.
  static func clockProblems(
    _ clock: ReplicaStatus.Clock, names: [DeviceID: String]
  ) -> [KithError] {
    var problems = clock.differences.map { difference in
      let name = names[difference.device] ?? difference.device.description
      let seconds = difference.milliseconds / 1_000
      return KithError(
        .clocksDiffer,
        "The clock of \(name) is wrong, or this one: its clock differs by \(seconds) s. "
          + difference.outcome.consequence, device: difference.device)
    }
    if let device = clock.adoptedFrom {
      problems.append(
        KithError(
          .clocksDiffer,
          "This host's clock is not synchronised: the time of \(names[device] ?? device.description) "
            + "counts, which is \(clock.adoptedMilliseconds / 1_000) s ahead of the host's. "
            + "Set the host's clock right, or run a time service (NTP).", device: device))
    }
    if clock.dataAheadMilliseconds > 0 {
      problems.append(
        KithError(
          .dataAhead,
          "What is stored here is \(clock.dataAheadMilliseconds / 1_000) s ahead of the time, and other "
            + "devices refuse it. "
            + (clock.isSynchronised || clock.adoptedFrom != nil
              ? "It is taken back once another device with a synchronised clock says that the time "
                + "is right."
              : "Run a time service (NTP) here: once the kernel calls the clock synchronised, or a "
                + "device is met that has such a clock, it is taken back, and what was written here "
                + "is published again.")))
    }
    return problems
  }
}

extension ClockDifference.Outcome {
  var consequence: String {
    switch self {
    case .adopted:
      "Its clock is called synchronised and this one's is not, so its time counts here. Set this "
        + "host's clock right."
    case .theyAdopt:
      "This clock is called synchronised and its is not: it is to take over this time. Set its "
        + "clock right."
    case .bothSynchronised:
      "Both are called synchronised, so stores are not exchanged with it until one is set right."
    case .neitherSynchronised:
      "Neither is called synchronised, so stores are not exchanged with it until both are right: "
        + "run a time service (NTP) on both."
    case .tooFar:
      "Its clock is called synchronised and this one's is not, but a difference of more than a day is "
        + "not believed: stores are not exchanged with it. If this host's clock is wrong, set it "
        + "right; else see that the other's is right."
    case .contradicted:
      "Its clock is called synchronised, but another device's is, too, and is nearer to this one's: "
        + "stores are not exchanged with it. See that its clock is right."
    case .behindData:
      "Its clock is called synchronised, but other devices published later than it says that it is: "
        + "stores are not exchanged with it. See that its clock is right."
    case .tooManyIncarnations:
      "Its clock is called synchronised, but this device was mended or copied so often that it no "
        + "longer takes over another's time. Run a time service (NTP) here."
    }
  }
}
