import Kith
import KithTerminal

extension StatusReport {
  /// Makes the report on a node.
  ///
  /// - Parameters:
  ///   - node: The node's own report.
  ///   - processID: The process that runs it; nil if none does.
  ///   - now: Now, in milliseconds since 1970.
  init(_ node: NodeReport, processID: Int32?, now: UInt64 = Moment.now) {
    let names = Dictionary(
      node.devices.map { ($0.id, $0.name) }, uniquingKeysWith: { first, _ in first })
    self.init(
      directory: node.directory, processID: processID, listening: node.listening,
      discovery: node.discovery, account: node.account,
      devices: node.devices.map { DeviceFacts($0, in: node, now: now) },
      stores: node.stores.map { store in
        StoreFacts(store) { id in names[id] ?? String(id.prefix(16)) }
      },
      isClockSynchronised: node.isClockSynchronised, problems: node.problems)
  }
}

extension DeviceFacts {
  /// Makes a device of a report, with its session, if it has one; `now` in milliseconds since 1970.
  init(_ device: NodeReport.Device, in report: NodeReport, now: UInt64) {
    let session = report.peers.last { $0.device == device.id }
    let silence = device.lastSeenMilliseconds.map { now - min($0, now) } ?? 0
    self.init(
      id: device.id, name: device.name, fingerprint: Hexadecimal.fingerprint(device.id),
      isSelf: device.isSelf, isConnected: session != nil || device.isConnected,
      isExchanging: session?.isExchanging ?? false,
      silentMilliseconds: session != nil && silence > Self.longestPause ? silence : nil,
      isDialled: session?.isDialled ?? false,
      addresses: (session.map { [$0.address] } ?? [])
        + device.addresses.filter { $0 != session?.address },
      lastSeenMilliseconds: device.lastSeenMilliseconds,
      clockOffsetMilliseconds: session?.clockOffsetMilliseconds)
  }
}

extension StoreFacts {
  /// Makes a store, with the names of devices.
  init(_ store: NodeReport.Store, name: (String) -> String) {
    self.init(
      identifier: store.identifier, keys: store.usage.keys, bytes: store.usage.bytes,
      limitKeys: store.usage.limitKeys, limitBytes: store.usage.limitBytes,
      limitKeyBytes: store.usage.limitKeyBytes, limitValueBytes: store.usage.limitValueBytes,
      hidden: store.hiddenKeys, drafts: store.drafts, refusals: store.refusals,
      quarantined: store.quarantined,
      isLacking: store.isLacking, missingChangeSets: store.missingChangeSets,
      missingEntries: store.missingEntries, digest: store.digest,
      heldBy: store.heldBy.map(name).sorted(), mismatches: store.policyMismatches.map(name).sorted()
    )
  }
}
