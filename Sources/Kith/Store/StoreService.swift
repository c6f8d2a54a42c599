internal import KithCore

/// The stores of a device: this process's ``Engine``, or a ``RemoteNode`` for the program that has
/// the directory open. It also updates the ``StoreView`` of each open store.
protocol StoreService: AnyObject, Sendable {
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView

  /// Opens a store for a view of another service. `superseded` are keys whose writes by this
  /// program were not taken over.
  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError)

  /// Stops updating a view.
  func release(_ view: StoreView)

  /// Writes a transaction, visible at once and durable soon after.
  ///
  /// - Throws: ``KithError`` with `closed` if the service ended and certainly did not write it: the
  ///   next service takes it. With `unexpectedValue` unless the store shows the expected values at
  ///   the moment when the write is accepted; then the view shows what it shows.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) throws(KithError)

  /// Writes transactions in order, each as ``write(_:_:expecting:)`` does: it is accepted or refused
  /// alone. They may wait briefly to be committed and published with others. May take only the first
  /// ones, but at least one.
  ///
  /// - Returns: Of each that it took, the error; nil: it is accepted.
  /// - Throws: ``KithError`` with `closed` if the service ended and certainly wrote none.
  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>
  ) throws(KithError) -> [KithError?]

  /// Durable on return; throws as ``write(_:_:expecting:)`` does.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) async throws(KithError)

  func flush() throws(KithError)

  /// The last time that accepted writes were, or may have been, lost; nil: never. Callers that
  /// await a write hear of it there.
  var loss: WriteLoss? { get }

  /// Takes over the writes made while nobody was signed in, and blocks until they are durable. It
  /// skips writes that it took over before. With no writes it forgets which those are: no local
  /// store holds them any more. The policy counts for a new store.
  ///
  /// - Returns: The keys whose writes lost to the account's entries.
  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key>

  func usage(of store: StoreIdentifier) throws(KithError) -> Usage

  func hiddenEntries(of store: StoreIdentifier) throws(KithError) -> [HiddenEntry]

  /// Returns the refusals that are kept, and removes those up to a number.
  func refusals(
    of store: StoreIdentifier, takingThrough number: UInt64?
  ) throws(KithError) -> [Refusal]

  /// The values that a key, or any, showed before, newest first.
  func history(
    of store: StoreIdentifier, key: String?, limit: Int
  ) throws(KithError) -> [PastValue]

  /// Writes past values as ``writeDurably(_:_:expecting:)`` writes; empty if none are kept.
  func perform(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue]

  func syncReport(of store: StoreIdentifier) throws(KithError) -> SyncReport

  /// Waits until the report ``SyncReport/isComplete``, or so many devices have everything; at most
  /// for a time. Ends early if waiting cannot help. Throws if the node of another program could not be
  /// asked, or ended.
  func waitUntilComplete(
    _ store: StoreIdentifier, devices: Int?, timeout: Duration
  ) async throws(KithError)

  var progress: Signal { get }
}

/// A loss of accepted writes at a service.
struct WriteLoss: Sendable {
  /// 1, 2, 3 … at each service.
  var number: Int
  var error: KithError
}

extension Engine: StoreService {
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView {
    try open(store, policy: policy, isLooking: false)
  }

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) throws(KithError) {
    try write(store, operations, expecting: expecting, origin: .owner)
  }

  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>
  ) throws(KithError) -> [KithError?] {
    try write(store, each: transactions, origin: .owner)
  }

  var loss: WriteLoss? {
    state.withLock { $0.shell.loss }.map {
      WriteLoss(number: $0.number, error: KithError($0.error))
    }
  }

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

  func refusals(
    of store: StoreIdentifier, takingThrough number: UInt64?
  ) throws(KithError) -> [Refusal] {
    guard let number else { return read { $0.refusals(of: store) } }
    return try perform(drainsHere: false) { (state, effects) throws(KithError) in
      let refusals = state.shell.replica.refusals(of: store)
      effects = try state.handle(.takeRefusals(store, through: number), at: clock())
      return refusals
    }
  }

  func history(of store: StoreIdentifier, key: String?, limit: Int) -> [PastValue] {
    read { $0.history(of: store, key: key.map { Key($0) }, limit: limit) }
  }

  func perform(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue] {
    guard let undone = try accept(undo, in: store, origin: .owner) else { return [] }
    try await awaitDurability(of: undone.write)
    return undone.past
  }

  func syncReport(of store: StoreIdentifier) -> SyncReport {
    let dispatcher = state.withLock { $0.carriers }
    let settings = dispatcher.inUse.filter { dispatcher.problem(of: $0.id) == nil }
    return read { SyncReport(of: store, $0, settings) }
  }

  /// Asks for a turn on each carrier first.
  func waitUntilComplete(_ store: StoreIdentifier, devices: Int?, timeout: Duration) async {
    let ids = lookAtCarriers()
    _ = await progress.wait(timeout: timeout) {
      let report = self.syncReport(of: store)
      if report.isComplete { return true }
      if self.read({ $0.isRevoked || $0.hasNoIncarnations && report.hasUnpublishedWrites }) {
        return true
      }
      let others = report.complete.count + report.incomplete.count
      if let devices { return report.complete.count >= devices || others < devices }
      if others == 0, ids.isEmpty { return true }
      guard !ids.isEmpty, report.carriers.count == ids.count else { return false }
      return self.read { replica in
        !ids.contains(where: replica.isBusy) && !replica.isConnected(to: report.incomplete)
      }
    }
  }
}

/// The program of this host that wrote. For each program, the others' writes come from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The program that has the directory open.
  case owner
  /// An attached program, by the number of its connection.
  case attached(UInt64)
}
