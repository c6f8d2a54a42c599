public import KithCore

extension NodeStatus.Problem {
  /// The kind of the problem, as of an error.
  public var code: KithError.Code { KithError.Code(description: name) }

  init(_ error: KithError) {
    self.init(
      name: error.code.description, message: error.message, device: error.device, path: error.path)
  }
}

extension NodeStatus {
  var findings: [KithError] {
    var findings: [KithError] = []
    if isRevoked {
      var error = KithError.revokedDevice
      error.device = device
      findings.append(error)
    }
    if hasNoIncarnations {
      findings.append(
        KithError(
          .tooManyIncarnations,
          "This device was copied or restored too often, and publishes nothing any more. Join "
            + "again in another directory.", device: device))
    }
    if counters.clones > 0 {
      findings.append(
        KithError(
          .cloned,
          "This device runs a second time, from a copy of its directory, or did so before an old "
            + "copy was put back. Stop all but one; there, run kith account leave, then kith join.",
          device: device))
    }
    let lacking = stores.compactMap { store in
      store.missing.map { "\(store.identifier.rawValue) (\($0.text))" }
    }
    if !lacking.isEmpty {
      findings.append(
        KithError(
          .damaged,
          "The database was damaged: data of \(lacking.joined(separator: ", ")) is missing. Kith "
            + "cannot tell of which keys. Other devices return it when they connect; until then "
            + "keys may be missing or show older values. Check the disk. If no other device has "
            + "it: kith doctor --accept-loss.",
          path: directory))
    } else if counters.damaged > 0 {
      findings.append(
        KithError(
          .damaged,
          "Rows of the database were damaged: \(counters.damaged). Nothing is missing. "
            + "Check the disk.", path: directory))
    }
    if counters.divergences > 0 {
      findings.append(
        KithError(
          .diverged,
          "States differed where they must not, and were exchanged anew: "
            + "\(counters.divergences). Please report it."))
    }
    for device in Set(stores.flatMap(\.removalsUnseenBy)).sorted() {
      let names = stores.filter { $0.removalsUnseenBy.contains(device) }.map(\.identifier.rawValue)
      let name = devices.first { $0.id == device }?.name ?? "A device"
      findings.append(
        KithError(
          .removalsUnseen,
          "\(name) has not seen many removals in \(names.joined(separator: ", ")), more than a store "
            + "keeps for long. Start it, or revoke it: kith devices revoke.", device: device))
    }
    return findings + devices.compactMap(leftOut) + clockFindings
  }
}

extension NodeStatus {
  /// The stores that this device and another one cannot exchange: a device keeps a number of them.
  private func leftOut(_ device: Device) -> KithError? {
    func names(_ stores: [StoreIdentifier]) -> String {
      let shown = stores.prefix(3).map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
      return stores.count > 3 ? "\(shown) and \(stores.count - 3) more" : shown
    }
    let (here, there) = (device.storesRejectedHere, device.storesRejectedThere)
    var parts: [String] = []
    if !here.isEmpty { parts.append("this one does not accept \(names(here)) of \(device.name)") }
    if !there.isEmpty { parts.append("\(device.name) does not accept \(names(there)) of this one") }
    guard !parts.isEmpty else { return nil }
    return KithError(
      .tooManyStores,
      "A device keeps at most \(Limits.stores) stores: \(parts.joined(separator: ", and ")). Such "
        + "stores are not exchanged. Move what they hold into stores that are on both (kith export; "
        + "kith import --prefix): stores cannot be removed.",
      device: device.id)
  }
}

extension NodeStatus {
  /// A problem for each device whose clock differs, if this device follows a distant time, and if
  /// its clock shows an impossible time, or its writes are stamped so far ahead that peers refuse them.
  var clockFindings: [KithError] {
    let names = Dictionary(devices.map { ($0.id, $0.name) }) { first, _ in first }
    var problems = clock.differences.map { difference in
      let name = names[difference.device] ?? difference.device.description
      return KithError(
        .clocksDiffer,
        "The clock of \(name) is wrong, or this one: its clock is "
          + "\(Self.clockText(difference.milliseconds)), so stores are not exchanged with it. "
          + difference.outcome.consequence,
        device: difference.device)
    }
    if let device = clock.follows,
      clock.aheadOfHostMilliseconds.magnitude > Limits.clockDifferenceMilliseconds.magnitude
    {
      problems.append(
        KithError(
          .clocksDiffer,
          "This host's clock is not synchronised, and "
            + "\(Self.clockText(-clock.aheadOfHostMilliseconds)): "
            + "the time of \(names[device] ?? device.description) counts. "
            + "Set the host's clock right, or run a time service (NTP).", device: device))
    }
    if clock.isImpossible {
      problems.append(
        KithError(
          .clocksDiffer,
          "This host's clock cannot be right: its time is before this version of Kith was made, or "
            + "after 2200. Set it right, or run a time service (NTP); until then other devices may "
            + "refuse what is written here."))
    } else if clock.stampsAheadMilliseconds > 0 {
      problems.append(
        KithError(
          .dataAhead,
          "The clock had been ahead: writes made here are stamped "
            + "\(Self.clockText(clock.stampsAheadMilliseconds)) of the time, and other devices "
            + "refuse them. \(clock.remedy)"))
    }
    return problems
  }

  /// Rounds to the last part: `59 s ahead`, `45 min behind`, `2 h 50 min ahead`.
  package static func clockText(_ milliseconds: Int64) -> String {
    let length = milliseconds.magnitude
    func rounded(to unit: UInt64) -> UInt64 { (length + unit / 2) / unit }
    func parts(_ count: UInt64, _ each: UInt64, _ one: String, _ other: String) -> String {
      count % each == 0
        ? "\(count / each) \(one)" : "\(count / each) \(one) \(count % each) \(other)"
    }
    let text =
      switch length {
      case ..<119_500: "\(rounded(to: 1_000)) s"
      case ..<7_170_000: "\(rounded(to: 60_000)) min"
      case ..<172_770_000: parts(rounded(to: 60_000), 60, "h", "min")
      default: parts(rounded(to: 3_600_000), 24, "days", "h")
      }
    return "\(text) \(milliseconds < 0 ? "behind" : "ahead")"
  }
}

extension NodeStatus.Clock {
  /// Whether the time in use is the host's, and one that no right clock shows
  /// (`Docs/Protocol/clocks.md`, "Whose time").
  fileprivate var isImpossible: Bool {
    guard isWorthless, follows == nil else { return false }
    let time = HybridTime(milliseconds: UInt64(clamping: milliseconds))
    return time.milliseconds < Software.releasedMilliseconds || !time.isPossible
  }

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
      "No time service (NTP) keeps either clock. Set the wrong one right, or run one on both."
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
