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
