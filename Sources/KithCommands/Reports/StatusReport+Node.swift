import Kith
import KithCore

extension StatusReport {
  /// The report on a node.
  ///
  /// - Parameter processID: The process that runs it; nil where none does.
  init(_ status: NodeStatus, processID: Int32?) {
    let names = Dictionary(
      status.devices.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
    func name(_ device: DeviceID) -> String {
      names[device] ?? Fingerprint(of: device).description
    }
    self.init(
      directory: status.directory, processID: processID, listening: status.listening,
      account: Hexadecimal.text(status.account.bytes),
      devices: status.devices.map { device in
        DeviceFacts(device, session: status.peers.last { $0.device == device.id })
      },
      stores: status.stores.map { StoreFacts($0, name: name) },
      isClockSynchronised: status.isClockSynchronised,
      problems: status.problems.map(\.description),
      counters: [
        "damaged": status.counters.damaged, "divergences": status.counters.divergences,
        "forks": status.counters.forks, "quarantined": status.counters.quarantined,
        "rejected": status.counters.rejected,
      ])
    if let offset = status.peers.map(\.clockOffsetMilliseconds).first(where: { $0.magnitude > 60_000 })
    {
      problems.append(
        "a peer's clock differs by \(Humane.decimals(Double(offset) / 1_000, 0)) s; stores are not "
          + "exchanged with it until both clocks are right (see: kith peers)")
    }
  }
}

extension DeviceFacts {
  /// A device with its session, if it has one.
  init(_ device: ReplicaStatus.Device, session: ReplicaStatus.Peer?) {
    self.init(
      id: Hexadecimal.text(device.id.bytes), name: device.name,
      fingerprint: Fingerprint(of: device.id).description, isSelf: device.isSelf,
      isConnected: session != nil || device.isConnected, isExchanging: session?.isExchanging ?? false,
      isDialled: session?.isDialled ?? false,
      addresses: (session.map { [$0.address] } ?? [])
        + device.addresses.filter { $0 != session?.address },
      lastSeenMilliseconds: device.lastSeenMilliseconds,
      clockOffsetMilliseconds: session?.clockOffsetMilliseconds)
  }
}

extension StoreFacts {
  /// A store, with the names of devices.
  init(_ store: ReplicaStatus.Store, name: (DeviceID) -> String) {
    self.init(
      identifier: store.identifier.rawValue, keys: store.usage.keys, bytes: store.usage.bytes,
      limitKeys: store.usage.policy.keys, limitBytes: store.usage.policy.totalBytes,
      limitKeyBytes: store.usage.policy.keyBytes, limitValueBytes: store.usage.policy.valueBytes,
      hidden: store.hiddenKeys, drafts: store.drafts, refusals: store.refusals,
      quarantined: store.quarantined, isProvisional: store.isProvisional,
      digest: Hexadecimal.text(store.digest.bytes), heldBy: store.heldBy.map(name).sorted(),
      mismatches: store.policyMismatches.map(name).sorted())
  }
}
