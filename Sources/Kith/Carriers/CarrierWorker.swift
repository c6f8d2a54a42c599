internal import KithCore

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
        dispatcher.noteListed(listing, of: id)
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
      dispatcher.noteRead(name, of: id)
      await receive(name, bytes, by: opener)
      return nil
    } catch {
      // Other failures are of the whole carrier, or pass. Wrong credentials have failed the listing.
      let isOfObject = [.tooMuch, .denied, .unexpected].contains(error.code)
      guard isOfObject, !Task.isCancelled else { return error }
      let isLargerThanOurs = error.code == .tooMuch && limit == Limits.objectBytes
      if isLargerThanOurs { dispatcher.noteRead(name, of: id) } else { note(error, of: name) }
      await receive(name, isLargerThanOurs ? [] : nil, by: opener)
      return nil
    }
  }

  /// Notes for a person that an object is left out of this turn. It has more bytes than the listing
  /// said, because it was still being written or the server tells false sizes, or it cannot be read.
  private func note(_ failure: CarrierFailure, of name: ObjectName) {
    var failure = failure
    if failure.code != .tooMuch {
      failure.message = "The object \(name) was left out. \(failure.message)"
    }
    dispatcher.note(failure, of: id, object: name, at: engine.clock().wallMilliseconds)
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
