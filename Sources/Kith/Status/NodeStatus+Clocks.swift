import KithCore

extension NodeStatus {
  /// A problem for each device whose clock differs, if this device follows a distant time, and if
  /// its writes are stamped so far ahead that peers refuse them.
  var clockFindings: [KithError] {
    let names = Dictionary(devices.map { ($0.id, $0.name) }) { first, _ in first }
    var problems = clock.differences.map { difference in
      let name = names[difference.device] ?? difference.device.description
      let seconds = difference.milliseconds / 1_000
      return KithError(
        .clocksDiffer,
        "The clock of \(name) is wrong, or this one: its clock differs by \(seconds) s, so stores "
          + "are not exchanged with it. \(difference.outcome.consequence)",
        device: difference.device)
    }
    if let device = clock.follows,
      clock.aheadOfHostMilliseconds.magnitude > Limits.clockDifferenceMilliseconds.magnitude
    {
      problems.append(
        KithError(
          .clocksDiffer,
          "This host's clock is not synchronised: the time of \(names[device] ?? device.description) "
            + "counts, which is \(clock.aheadOfHostMilliseconds / 1_000) s ahead of the host's. "
            + "Set the host's clock right, or run a time service (NTP).", device: device))
    }
    if clock.stampsAheadMilliseconds > 0 {
      problems.append(
        KithError(
          .dataAhead,
          "The clock had been ahead: what is written here is stamped \(clock.stampsAheadMilliseconds / 1_000) "
            + "s ahead of the time, and other devices refuse it. \(clock.remedy)"))
    }
    return problems
  }
}

extension NodeStatus.Clock {
  fileprivate var remedy: String {
    if stampsAheadMilliseconds <= Limits.healingMilliseconds { return "That passes by itself." }
    if isCertain {
      return
        "It goes on in a new generation as soon as one is left: there is one more every 30 days."
    }
    return "Run a time service (NTP) here, or, if `kith clock` shows the right time, say so: run "
      + "kith clock accept."
  }
}

extension NodeStatus.ClockDifference.Outcome {
  var consequence: String {
    switch self {
    case .bothSynchronised: "Both are called synchronised. Set the one that is wrong right."
    case .neitherSynchronised:
      "Neither is called synchronised. Set the wrong one right, or run a time service (NTP) on both."
    case .tooFar:
      "Its clock is called synchronised and this one's is not, but a difference of more than a day is "
        + "not believed. If this host's clock is wrong, set it right; else see that the other's is."
    case .anotherIsNearer:
      "Its clock is called synchronised, but another device's is, too, and is nearer to this one's. "
        + "See that its clock is right."
    case .theyAreTooFar:
      "This clock is called synchronised and its is not, and it does not follow this one: it differs "
        + "by more than a day, or follows another. Set its clock right."
    }
  }
}
