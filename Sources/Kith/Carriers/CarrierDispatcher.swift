internal import KithCore
internal import Synchronization

/// Hands the core's orders to the carriers' workers, and knows what went wrong last.
final class CarrierDispatcher: Sendable {
  /// The bytes are those of the object to put.
  typealias Order = (order: CarrierOrder, bytes: [UInt8])

  private struct State {
    var orders: [CarrierID: AsyncStream<Order>.Continuation] = [:]
    var problems: [CarrierID: Problem] = [:]
    var inUse: [CarrierSettings] = []
  }

  struct Problem: Sendable {
    var failure: CarrierFailure
    /// Since 1970.
    var milliseconds: UInt64
  }

  private let state = Mutex(State())
  /// Objects of all carriers are opened one after the other, so that together they keep one core
  /// busy.
  private let opening = Mutex(())

  /// Opens an object on a thread of its own: trying its keys may take long.
  func open(_ bytes: [UInt8], named name: ObjectName, by opener: ObjectOpener) async -> OpenedObject
  {
    await BlockingThread.run { self.opening.withLock { _ in opener.open(bytes, named: name) } }
  }

  /// The orders for a carrier, until ``close(_:)``. The core gives one at a time.
  func open(_ id: CarrierID) -> AsyncStream<Order> {
    let (stream, continuation) = AsyncStream<Order>.makeStream()
    state.withLock { $0.orders.updateValue(continuation, forKey: id) }?.finish()
    return stream
  }

  func close(_ id: CarrierID) { state.withLock { $0.orders.removeValue(forKey: id) }?.finish() }

  /// Returns false if no worker takes the carrier's orders.
  func give(_ order: Order, to id: CarrierID) -> Bool {
    guard let orders = state.withLock({ $0.orders[id] }) else { return false }
    orders.yield(order)
    return true
  }

  func note(_ failure: CarrierFailure?, of id: CarrierID, at milliseconds: UInt64 = 0) {
    state.withLock {
      $0.problems[id] = failure.map { Problem(failure: $0, milliseconds: milliseconds) }
    }
  }

  /// The carriers of the running node.
  var inUse: [CarrierSettings] {
    get { state.withLock { $0.inUse } }
    set { state.withLock { $0.inUse = newValue } }
  }

  func problem(of id: CarrierID) -> Problem? { state.withLock { $0.problems[id] } }
}

extension Engine {
  /// Begins a turn on each carrier now.
  @discardableResult
  func lookAtCarriers() -> [CarrierID] {
    let dispatcher = state.withLock { $0.carriers }
    let ids = dispatcher.inUse.map(\.id)
    for id in ids { input(.carrier(id, .asked)) }
    return ids
  }

  /// Carries out an order of the core, after the commit that it depends on.
  func carryOut(_ order: CarrierOrder, on id: CarrierID) throws(StorageError) {
    let dispatcher = state.withLock { $0.carriers }
    var bytes: [UInt8]? = []
    if case .put(let object) = order {
      bytes = try object.sealed(from: storage)
      if bytes == nil {
        dispatcher.note(
          CarrierFailure(
            .unexpected, "The database lacks something that was to be put there. See kith doctor."),
          of: id, at: clock().wallMilliseconds)
      }
    }
    if let bytes, dispatcher.give((order, bytes), to: id) { return }
    if case .rest = order { return }
    input(.carrier(id, .failed(retryAfterMilliseconds: nil)))
  }
}
