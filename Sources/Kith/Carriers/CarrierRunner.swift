internal import Glibc
internal import KithCore
internal import Synchronization

/// Uses a node's carriers while it runs: a worker for each. If a carrier's settings change, only its
/// own worker ends and begins anew: the other devices, which may change shared ones at any time,
/// disturb no turn on another carrier.
final class CarrierRunner: Sendable {
  /// How long stopping waits for a last turn.
  private static let lastTurn = Duration.seconds(5)

  /// A carrier in use with its settings.
  private struct Use: Sendable {
    let settings: CarrierSettings
    /// Nil: the carrier does not open.
    let worker: CarrierWorker?
    /// Finished once the settings are no longer in use.
    let ending = Signal()
  }

  private let engine: Engine
  private let list: CarrierList
  private let open: CarrierOpener
  private let dispatcher: CarrierDispatcher
  /// The workers of the carriers in use when ``run()`` ended.
  private let lastWorkers = Mutex<[CarrierWorker]>([])

  init(engine: Engine, list: CarrierList, open: @escaping CarrierOpener) {
    self.engine = engine
    self.list = list
    self.open = open
    dispatcher = engine.state.withLock { $0.carriers }
  }

  /// Works until the task is cancelled.
  func run() async {
    var uses: [CarrierID: Use] = [:]
    // A child is a worker's, which returns its carrier, or waits for progress.
    await withTaskGroup(of: CarrierID?.self) { group in
      var isWaiting = false
      while !Task.isCancelled, !engine.progress.isFinished {
        let version = engine.progress.version
        for worker in update(&uses) {
          group.addTask { [ending = uses[worker.id]?.ending] in
            await race([{ await worker.run() }, { if let ending { for await () in ending {} } }])
            return worker.id
          }
        }
        if !isWaiting {
          group.addTask {
            await self.engine.progress.wait(after: version)
            return nil
          }
        }
        let ended = await group.next() ?? nil
        isWaiting = ended != nil
        // Only then may its carrier be used again: its last answer must not count for a new turn.
        if let ended, !Task.isCancelled { uses[ended] = nil }
      }
      group.cancelAll()
    }
    lastWorkers.withLock {
      $0 = uses.values.compactMap { $0.ending.isFinished ? nil : $0.worker }
    }
  }

  /// Puts what the carriers lack, within a limit. Called when the node stops.
  func finish() async {
    defer { dispatcher.inUse = [] }
    let workers = lastWorkers.withLock { $0 }.filter { dispatcher.problem(of: $0.id) == nil }
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

  /// Ends the uses whose settings are in use no more, and begins those that are new. Returns the
  /// workers to run.
  private func update(_ uses: inout [CarrierID: Use]) -> [CarrierWorker] {
    // No carrier is used before the account's records tell its place.
    let place = engine.read { $0.carrierKeys?.place }
    let list = place == nil ? [] : list.inUse(beside: engine.sharedCarriers)
    for (id, use) in uses where !list.contains(use.settings) {
      use.ending.finish()
      if use.worker == nil { uses[id] = nil }
    }
    guard let place else { return [] }
    var begun: [CarrierWorker] = []
    for settings in list where uses[settings.id] == nil {
      let worker = worker(settings, place)
      uses[settings.id] = Use(settings: settings, worker: worker)
      if let worker { begun.append(worker) }
    }
    dispatcher.inUse = list.filter { uses[$0.id]?.worker != nil }
    dispatcher.keepProblems(of: uses.keys)
    for id in engine.read({ $0.carrierIDs }).subtracting(uses.keys) {
      engine.input(.carrier(id, .removed))
    }
    return begun
  }

  /// Nil: the carrier does not open, and its problem is noted.
  private func worker(_ settings: CarrierSettings, _ place: String) -> CarrierWorker? {
    do throws(CarrierFailure) {
      return CarrierWorker(
        id: settings.id, storage: try open(settings), place: place, engine: engine,
        dispatcher: dispatcher)
    } catch {
      dispatcher.note(error, of: settings.id, at: engine.clock().wallMilliseconds)
      return nil
    }
  }
}

/// Does the core's orders on one carrier, one after the other.
struct CarrierWorker: Sendable {
  /// The number of objects that are got at once.
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
    if isStopping {
      engine.input(.carrier(id, .stopping))
      // A revoked device begins no turn, nor does one whose storage fails: no order would come.
      guard engine.isBusy(with: id) else { return }
    }
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
    // The core counts the listed sizes, so an object may not bring more.
    let listed = engine.read { $0.listedBytes(of: name, on: id) }
    let limit = min(listed ?? Limits.objectBytes, Limits.objectBytes)
    do throws(CarrierFailure) {
      let bytes = try await storage.get(name.description, from: place, limit: limit)
      engine.metrics.carrierBytesGot.increment(by: bytes?.count ?? 0)
      await receive(name, bytes, by: opener)
      return nil
    } catch {
      guard error.code == .tooMuch else { return error }
      // It is larger than any object of ours, or than the listing said: it was still being written, or
      // the server tells false sizes, which a person has to know.
      if limit < Limits.objectBytes {
        dispatcher.note(error, of: id, at: engine.clock().wallMilliseconds)
      }
      await receive(name, limit == Limits.objectBytes ? [] : nil, by: opener)
      return nil
    }
  }

  /// Opens an object and hands it to the core. `bytes` is nil if it is gone.
  private func receive(_ name: ObjectName, _ bytes: [UInt8]?, by opener: ObjectOpener) async {
    await dispatcher.withObjectLock {
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
    /// When it was noted, since 1970.
    var milliseconds: UInt64
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

  func note(_ failure: CarrierFailure?, of id: CarrierID, at milliseconds: UInt64 = 0) {
    state.withLock {
      $0.problems[id] = failure.map { Problem(failure: $0, milliseconds: milliseconds) }
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
