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
    if isBarren {
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
    let (here, there) = (device.storesLeftOutHere, device.storesItLeavesOut)
    var parts: [String] = []
    if !here.isEmpty { parts.append("this one does not take \(names(here)) of \(device.name)") }
    if !there.isEmpty { parts.append("\(device.name) does not take \(names(there)) of this one") }
    guard !parts.isEmpty else { return nil }
    return KithError(
      .tooManyStores,
      "A device keeps at most \(Limits.stores) stores: \(parts.joined(separator: ", and ")). Such "
        + "stores are not exchanged. Move what they hold into others (kith export, kith import), and "
        + "use fewer.",
      device: device.id)
  }
}
