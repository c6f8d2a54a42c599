import Testing

@testable import KithCore

extension TestWorld {
  /// Asks for a turn, and carries out a device's orders for a carrier until it rests.
  func turn(of index: Int, on id: CarrierID) {
    if devices[index].replica.carriers[id]?.schedule == nil {
      perform(.carrier(id, .attached(shortestMilliseconds: 5_000)), on: index)
    }
    perform(.carrier(id, .asked), on: index)
    while !orders.isEmpty {
      let (index, id, order) = orders.removeFirst()
      for event in carryOut(order, of: index, on: id) { perform(.carrier(id, event), on: index) }
    }
  }

  private func carryOut(
    _ order: CarrierOrder, of index: Int, on id: CarrierID
  ) -> [CarrierEvent] {
    let objects = carriers[id, default: [:]]
    switch order {
    case .list: return [.listed(objects.mapValues(\.count))]
    case .get(let names):
      let opener = devices[index].replica.objectOpener
      return names.map { name in .got(name, objects[name].map { opener.open($0, named: name) }) }
    case .put(let object):
      guard let sealed = try? object.sealed(from: devices[index].storage) else {
        Issue.record("\(devices[index].name) puts what its disk lacks")
        return [.failed(retryAfterMilliseconds: nil)]
      }
      let opener = devices[index].replica.objectOpener
      if opener.open(sealed, named: object.name).facts == nil {
        Issue.record("\(devices[index].name) puts what does not open")
      }
      carriers[id, default: [:]][object.name] = sealed
      return [.stored(object.name, bytes: sealed.count)]
    case .delete(let names):
      for name in names { carriers[id]?[name] = nil }
      return [.deleted]
    case .rest: return []
    }
  }
}
