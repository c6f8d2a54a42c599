internal import KithCore

/// The engine of this process or the node of another one, which serves a store's reads and writes.
///
/// It also applies each change to the store's ``StoreView``.
protocol StoreBacking: AnyObject, Sendable {
  /// Writes a transaction, which is visible at once and durable soon after. If `gathers`, it may
  /// wait a moment for others, to be published with them.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool
  ) throws(KithError)

  /// Writes a transaction, which is visible at once, and returns when it is durable.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError)

  /// Makes all earlier writes durable. It blocks while the disk writes.
  func flush() throws(KithError)

  /// Returns the bytes and keys that a store uses, with its limits.
  func usage(of store: StoreIdentifier) -> Usage

  /// Returns the hidden writes, in order of keys.
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenValue]

  /// Returns the refused transactions, oldest first.
  func refusals(of store: StoreIdentifier) -> [RefusedTransaction]

  /// Removes refusals up to a number. Returns false if that is not possible now.
  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool

  /// Returns the devices that have the writes of this one, as far as is known now.
  func syncReport(of store: StoreIdentifier) -> SyncReport

  /// Waits until all other devices have everything, or the timeout passes.
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
