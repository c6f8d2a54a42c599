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
    let workers = lastWorkers.withLock { $0 }.filter { dispatcher.works($0.id) }
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
