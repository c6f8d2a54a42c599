internal import KithCore

/// The stores of a device: at the engine of this process (``Engine``), or at that of the program that
/// has the directory open (``RemoteNode``).
///
/// It also applies each change to the ``StoreView`` of an open store.
protocol StoreService: AnyObject, Sendable {
  /// Opens a store, and begins it if it is new.
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView

  /// Opens a store for a view that showed another service's, and shows there what this one has.
  /// `superseded` are keys whose writes by this program were not taken over.
  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError)

  /// Shows nothing more in a view.
  func release(_ view: StoreView)

  /// Writes a transaction, which is visible at once and durable soon after. If `gathers`, it may
  /// wait a moment for others, to be published with them.
  ///
  /// - Throws: ``KithError`` with `closed` if it was certainly not written, because the service has
  ///   ended: the next service takes it.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool
  ) throws(KithError)

  /// Writes a transaction, which is visible at once, and returns when it is durable. It throws as
  /// ``write(_:_:gathers:)`` does.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError)

  /// Makes all earlier writes durable. It blocks while the disk writes.
  func flush() throws(KithError)

  /// Whether the service has ended, and accepted writes may be lost.
  var hasLostWrites: Bool { get }

  /// Takes over the writes that were made while nobody was signed in, and returns when they are
  /// durable. Writes that were taken before are skipped. With none, forgets which those are. The
  /// policy counts if the account has no such store. It blocks while the disk writes.
  ///
  /// - Returns: The keys whose writes lost to the account's entries.
  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key>

  /// Returns the bytes and keys that a store uses, with its limits.
  func usage(of store: StoreIdentifier) -> Usage

  /// Returns the hidden writes, in order of keys.
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenEntry]

  /// Returns the refused transactions, oldest first.
  func refusals(of store: StoreIdentifier) -> [Refusal]

  /// Removes refusals up to a number. Returns false if that is not possible now.
  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool

  /// Returns the devices that have the writes of this one, as far as is known now.
  func syncReport(of store: StoreIdentifier) -> SyncReport

  /// Waits until all other devices have everything, or the timeout passes.
  func waitUntilComplete(_ store: StoreIdentifier, timeout: Duration) async

  /// Raised when the node's status may have changed.
  var progress: Signal { get }
}

extension Engine: StoreService {
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView {
    try open(store, policy: policy, isLooking: false)
  }

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool
  ) throws(KithError) {
    try write(store, operations, gathers: gathers, origin: .owner)
  }

  /// An engine of this process tells each writer itself.
  var hasLostWrites: Bool { false }

  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    _ = try open(store, policy: read { $0.usage(of: store)?.policy } ?? policy)
    return try adopt(store, writes)
  }

  func usage(of store: StoreIdentifier) -> Usage {
    read { $0.usage(of: store) } ?? Usage(bytes: 0, keys: 0, policy: .standard)
  }

  func hiddenEntries(of store: StoreIdentifier) -> [HiddenEntry] {
    read { $0.hiddenEntries(of: store) }
  }

  func refusals(of store: StoreIdentifier) -> [Refusal] {
    read { $0.refusals(of: store) }
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
