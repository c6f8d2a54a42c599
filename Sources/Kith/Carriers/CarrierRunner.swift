internal import Glibc
internal import KithCore
internal import Synchronization

/// Uses a node's carriers while it runs: a worker for each, begun anew when the list changes.
final class CarrierRunner: Sendable {
  /// How long stopping waits for a last turn.
  private static let lastTurn = Duration.seconds(5)

  private let engine: Engine
  private let list: CarrierList
  private let open: CarrierOpener
  private let dispatcher: CarrierDispatcher
  private let workers = Mutex<[CarrierWorker]>([])

  init(engine: Engine, list: CarrierList, open: @escaping CarrierOpener) {
    self.engine = engine
    self.list = list
    self.open = open
    dispatcher = engine.state.withLock { $0.carriers }
  }

  /// Works until the task is cancelled.
  func run() async {
    while !Task.isCancelled, !engine.progress.isFinished {
      let list = inUse
      begin(list)
      // A worker ends only with the task.
      let works = workers.withLock { $0 }.map { worker in { @Sendable in await worker.run() } }
      await race(
        works + [{ for await () in self.engine.progress where self.inUse != list { return } }])
    }
  }

  /// Puts what the carriers lack, within a limit. Called when the node stops.
  func finish() async {
    defer { dispatcher.inUse = [] }
    let workers = workers.withLock { $0 }.filter { dispatcher.problem(of: $0.id) == nil }
    guard !workers.isEmpty else { return }
    await race([
      {
        await withTaskGroup(of: Void.self) { group in
          for worker in workers { group.addTask { await worker.run(isStopping: true) } }
        }
      },
      { try? await Task.sleep(for: Self.lastTurn) },
    ])
  }

  private func begin(_ list: [CarrierSettings]) {
    guard let place = engine.read({ $0.carrierKeys?.place }) else { return }
    var fresh: [CarrierWorker] = []
    var opened: [CarrierSettings] = []
    for settings in list {
      do throws(CarrierFailure) {
        fresh.append(
          CarrierWorker(
            id: settings.id, storage: try open(settings), place: place, engine: engine,
            dispatcher: dispatcher))
        opened.append(settings)
      } catch {
        dispatcher.note(error, of: settings.id, at: engine.clock().wallMilliseconds)
      }
    }
    dispatcher.inUse = opened
    workers.withLock { $0 = fresh }
    for id in engine.read({ $0.carrierIDs }).subtracting(list.map(\.id)) {
      dispatcher.note(nil, of: id)
      engine.input(.carrier(id, .removed))
    }
  }

  /// None before the account's records tell its place.
  private var inUse: [CarrierSettings] {
    engine.read { $0.carrierKeys } == nil ? [] : list.inUse(beside: engine.sharedCarriers)
  }
}

/// Does the core's orders on one carrier, one after the other.
struct CarrierWorker: Sendable {
  /// Objects got at once.
  private static let gets = 4

  let id: CarrierID
  let storage: any CarrierStorage
  let place: String
  let engine: Engine
  let dispatcher: CarrierDispatcher
  private let listed = Signal()

  /// Works until the task is cancelled. If `isStopping`, it does one last turn and returns.
  func run(isStopping: Bool = false) async {
    let orders = dispatcher.orders(for: id)
    defer { dispatcher.endOrders(for: id) }
    let shortest = UInt64(max(0, storage.shortestPause / .milliseconds(1)))
    engine.input(.carrier(id, .attached(shortestMilliseconds: shortest)))
    if isStopping { engine.input(.carrier(id, .stopping)) }
    await withTaskGroup(of: Void.self) { group in
      if !isStopping {
        group.addTask {
          // A place that goes away ends its changes; a later listing shows that it is back.
          for await () in listed {
            guard let changes = storage.changes(in: place) else { return }
            for await _ in changes { engine.input(.carrier(id, .changed)) }
          }
        }
      }
      for await order in orders {
        if case .rest = order.order {
          if isStopping { break }
          continue
        }
        await perform(order)
        if Task.isCancelled { break }
      }
      group.cancelAll()
    }
  }

  private func perform(_ order: CarrierDispatcher.Order) async {
    do throws(CarrierFailure) {
      switch order.order {
      case .list:
        let objects = try await storage.list(place, limit: Limits.objects)
        let listing = await BlockingThread.run {
          var listing: [ObjectName: Int] = [:]
          for object in objects {
            if let name = ObjectName(object.name) { listing[name] = object.bytes }
          }
          Engine.giveMemoryBack()
          return listing
        }
        dispatcher.note(nil, of: id)
        listed.raise()
        engine.input(.carrier(id, .listed(listing)))
      case .get(let names): try await get(names)
      case .put(let object):
        let (name, bytes) = (object.name, order.bytes)
        try await storage.put(bytes, as: name.description, in: place)
        engine.metrics.carrierBytesPut.increment(by: bytes.count)
        engine.input(.carrier(id, .stored(name, bytes: bytes.count)))
      case .delete(let names):
        for name in names { try await storage.delete(name.description, from: place) }
        engine.input(.carrier(id, .deleted))
      case .rest: break
      }
    } catch {
      // The received part of an answer that is too long.
      if error.code == .tooMuch { await BlockingThread.run { Engine.giveMemoryBack() } }
      fail(error)
    }
  }

  private func get(_ names: [ObjectName]) async throws(CarrierFailure) {
    let opener = engine.read { $0.objectOpener }
    var failure: CarrierFailure?
    await withTaskGroup(of: CarrierFailure?.self) { group in
      var left = names.makeIterator()
      func begin() {
        guard failure == nil, let name = left.next() else { return }
        group.addTask { await get(name, opener) }
      }
      for _ in 0..<Self.gets { begin() }
      while let result = await group.next() {
        failure = failure ?? result
        begin()
      }
    }
    if let failure { throw failure }
  }

  private func get(_ name: ObjectName, _ opener: ObjectOpener) async -> CarrierFailure? {
    do throws(CarrierFailure) {
      let bytes = try await storage.get(
        name.description, from: place, limit: Limits.objectBytes)
      engine.metrics.carrierBytesGot.increment(by: bytes?.count ?? 0)
      await receive(name, bytes, by: opener)
      return nil
    } catch {
      guard error.code == .tooMuch else { return error }
      // It is larger than any object of ours.
      await receive(name, [], by: opener)
      return nil
    }
  }

  /// Opens an object and hands it to the core. `bytes` is nil if it is gone.
  private func receive(_ name: ObjectName, _ bytes: [UInt8]?, by opener: ObjectOpener) async {
    await dispatcher.inTurn {
      let object = bytes.map { opener.open($0, named: name) }
      let start = ContinuousClock.now
      engine.input(.carrier(id, .got(name, object)))
      return ContinuousClock.now - start
    }
  }

  private func fail(_ failure: CarrierFailure) {
    if !Task.isCancelled { dispatcher.note(failure, of: id, at: engine.clock().wallMilliseconds) }
    let wait = failure.retryAfter.map { UInt64(max(0, $0 / .milliseconds(1))) }
    engine.input(.carrier(id, .failed(retryAfterMilliseconds: wait)))
  }
}

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
  private let turn = Mutex(())

  /// Opens an object and hands it to the core, both of which may take long: on a thread of its own,
  /// and for all carriers one after the other, so that together they keep at most one core busy.
  /// `body` returns how long the core was held. As long it is left to others, as with a session
  /// over its share.
  func inTurn(_ body: @escaping @Sendable () -> Duration) async {
    await BlockingThread.run {
      self.turn.withLock { _ in
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
