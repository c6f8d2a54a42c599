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
  func undo(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue]

  /// Throws `timedOut` if another program's node does not answer in that time.
  func syncReport(
    of store: StoreIdentifier, within limit: Duration
  ) throws(KithError) -> SyncReport

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

/// The program of this host that wrote. For each program, the others' writes come from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The program that has the directory open.
  case owner
  /// An attached program, by the number of its connection.
  case attached(UInt64)
}
