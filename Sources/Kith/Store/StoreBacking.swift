internal import KithCore

/// What stands behind a store: the engine of this process, or the node of another one.
///
/// Whoever stands behind also applies what changes to the store's ``StoreView``.
protocol StoreBacking: AnyObject, Sendable {
  /// Makes writes that stand or fall together visible at once, durable soon after. Where it
  /// gathers, they may wait a moment for others, to be published with them.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool
  ) throws(KithError)

  /// Makes writes that stand or fall together visible at once, and returns when they are durable.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError)

  /// Makes everything durable that was written before; it blocks for as long as the disk takes.
  func flush() throws(KithError)

  /// What a store uses of its limits.
  func usage(of store: StoreIdentifier) -> Usage

  /// What the quota hides, in order of keys.
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenValue]

  /// Refused transactions, oldest first.
  func refusals(of store: StoreIdentifier) -> [RefusedTransaction]

  /// Forgets refusals up to a number; false where that cannot be done now.
  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool

  /// Which devices have what this one wrote, as far as is known now.
  func syncReport(of store: StoreIdentifier) -> SyncReport

  /// Waits until all other devices have everything, or the time is over.
  func waitUntilComplete(_ store: StoreIdentifier, timeout: Duration) async
}

extension Engine: StoreBacking {
  func usage(of store: StoreIdentifier) -> Usage {
    read { $0.usage(of: store) } ?? Usage(bytes: 0, keys: 0, policy: .standard)
  }

  func hiddenEntries(of store: StoreIdentifier) -> [HiddenValue] {
    read { $0.hiddenEntries(of: store) }.compactMap { entry in
      guard let value = try? entry.value.decoded() else { return nil }
      return HiddenValue(
        key: entry.key.text, value: value, bytes: entry.value.size, device: entry.stamp.device,
        clock: entry.stamp.clock)
    }
  }

  func refusals(of store: StoreIdentifier) -> [RefusedTransaction] {
    read { $0.refusals(of: store) }.map(RefusedTransaction.init)
  }

  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool {
    input(.takeRefusals(store, through: number))
  }

  func syncReport(of store: StoreIdentifier) -> SyncReport {
    read { SyncReport(of: store, $0) }
  }

  func waitUntilComplete(_ store: StoreIdentifier, timeout: Duration) async {
    _ = await progress.wait(timeout: timeout) { self.syncReport(of: store).isComplete }
  }
}
