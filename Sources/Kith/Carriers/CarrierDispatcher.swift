internal import Glibc
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
    /// When it was noted, since 1970.
    var milliseconds: UInt64
    /// The object that it is about, if the carrier is used without it.
    var object: ObjectName?
  }

  private let state = Mutex(State())
  /// Held while an object is opened and handed to the core.
  private let objectLock = Mutex(())

  /// Opens an object and hands it to the core, both of which may take long: on a thread of its own,
  /// and for all carriers one after the other, so that together they keep at most one core busy.
  /// `body` returns how long the core was held. As long it is left to others, as with a session
  /// over its share.
  func withObjectLock(_ body: @escaping @Sendable () -> Duration) async {
    await BlockingThread.run {
      self.objectLock.withLock { _ in
        let held = body()
        let microseconds = min(held, .seconds(1)) / .microseconds(1)
        if held > .nanoseconds(SessionShares.sliceNanoseconds) { usleep(UInt32(microseconds)) }
      }
    }
  }

  /// The orders for a carrier, until ``endOrders(for:)``. The core gives one at a time.
  func orders(for id: CarrierID) -> AsyncStream<Order> {
    let (stream, continuation) = AsyncStream<Order>.makeStream()
    state.withLock { $0.orders.updateValue(continuation, forKey: id) }?.finish()
    return stream
  }

  func endOrders(for id: CarrierID) {
    state.withLock { $0.orders.removeValue(forKey: id) }?.finish()
  }

  /// Returns false if no worker takes the carrier's orders.
  func give(_ order: Order, to id: CarrierID) -> Bool {
    guard let orders = state.withLock({ $0.orders[id] }) else { return false }
    orders.yield(order)
    return true
  }

  func note(
    _ failure: CarrierFailure, of id: CarrierID, object: ObjectName? = nil, at milliseconds: UInt64
  ) {
    state.withLock {
      $0.problems[id] = Problem(failure: failure, milliseconds: milliseconds, object: object)
    }
  }

  /// A listing came. Only the problem of an object that it shows is left.
  func noteListed(_ listing: [ObjectName: Int], of id: CarrierID) {
    state.withLock { state in
      if let object = state.problems[id]?.object, listing[object] != nil { return }
      state.problems[id] = nil
    }
  }

  /// An object was read, is gone, or is none of ours.
  func noteRead(_ name: ObjectName, of id: CarrierID) {
    state.withLock { state in
      guard state.problems[id]?.object == name else { return }
      state.problems[id] = nil
    }
  }

  /// Forgets the problems of all other carriers.
  func keepProblems(of ids: some Collection<CarrierID>) {
    state.withLock { state in state.problems = state.problems.filter { ids.contains($0.key) } }
  }

  /// The carriers of the running node.
  var inUse: [CarrierSettings] {
    get { state.withLock { $0.inUse } }
    set { state.withLock { $0.inUse = newValue } }
  }

  func problem(of id: CarrierID) -> Problem? { state.withLock { $0.problems[id] } }

  /// Whether a carrier works, perhaps without an object.
  func works(_ id: CarrierID) -> Bool { problem(of: id).map { $0.object != nil } ?? true }
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

  /// Whether the core has begun a turn on a carrier, or will. While storage fails, it takes none.
  func isBusy(with id: CarrierID) -> Bool {
    state.withLock { $0.problem == nil && $0.shell.replica.isBusy(with: id) }
  }

  /// Gives a carrier's worker an order of the core, after the commit that it depends on.
  func give(_ order: CarrierOrder, to id: CarrierID) throws(StorageError) {
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
