internal import KithCore
internal import Synchronization

/// Uses a node's carriers while it runs: a worker for each, begun anew when the list changes.
final class CarrierRunner: Sendable {
  /// How long stopping waits for a last turn.
  private static let lastTurn = Duration.seconds(5)

  private struct Entry: Sendable {
    let settings: CarrierSettings
    let worker: CarrierWorker
  }

  private let engine: Engine
  private let list: CarrierList
  private let open: CarrierOpener
  private let desk: CarrierDesk
  private let entries = Mutex<[Entry]>([])

  init(engine: Engine, list: CarrierList, open: @escaping CarrierOpener) {
    self.engine = engine
    self.list = list
    self.open = open
    desk = engine.state.withLock { $0.carriers }
  }

  /// Works until the task is cancelled.
  func run() async {
    while !Task.isCancelled, !engine.progress.isFinished {
      let list = inUse
      begin(list)
      let workers = entries.withLock { $0.map(\.worker) }
      await withTaskGroup(of: Void.self) { group in
        for worker in workers { group.addTask { await worker.run() } }
        group.addTask { await self.waitForChange(of: list) }
        // A worker ends only with the task.
        await group.next()
        group.cancelAll()
      }
    }
  }

  /// Puts what the carriers lack, within a limit. Called when the node stops.
  func finish() async {
    defer { desk.inUse = [] }
    let workers = entries.withLock { $0.map(\.worker) }.filter { worker in
      desk.problem(of: worker.id) == nil
    }
    guard !workers.isEmpty else { return }
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await withTaskGroup(of: Void.self) { inner in
          for worker in workers { inner.addTask { await worker.run(isStopping: true) } }
        }
      }
      group.addTask { try? await Task.sleep(for: Self.lastTurn) }
      await group.next()
      group.cancelAll()
    }
  }

  private func begin(_ list: [CarrierSettings]) {
    let place = engine.account.carrierPlace
    var fresh: [Entry] = []
    for settings in list {
      do throws(CarrierFailure) {
        let worker = CarrierWorker(
          id: settings.id, storage: try open(settings), place: place, engine: engine, desk: desk)
        fresh.append(Entry(settings: settings, worker: worker))
      } catch {
        desk.note(error, of: settings.id, at: engine.clock().wallMilliseconds)
      }
    }
    desk.inUse = fresh.map(\.settings)
    entries.withLock { $0 = fresh }
    for id in engine.read({ $0.carrierIDs }).subtracting(list.map(\.id)) {
      desk.note(nil, of: id)
      engine.input(.carrier(id, .removed))
    }
  }

  private var inUse: [CarrierSettings] { list.inUse(beside: engine.sharedCarriers) }

  private func waitForChange(of list: [CarrierSettings]) async {
    while !Task.isCancelled, !engine.progress.isFinished {
      let version = engine.progress.version
      if inUse != list { return }
      await engine.progress.wait(after: version)
    }
  }
}
