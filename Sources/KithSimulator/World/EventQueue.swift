internal import HeapModule
internal import KithCore

/// Events by virtual time since the run began, then in the order of adding.
struct EventQueue<Event> {
  private struct Item: Comparable {
    let time: UInt64
    let order: UInt64
    let event: Event

    static func < (left: Self, right: Self) -> Bool {
      left.time != right.time ? left.time < right.time : left.order < right.order
    }

    static func == (left: Self, right: Self) -> Bool { left.order == right.order }
  }

  private var heap = Heap<Item>()
  private var count: UInt64 = 0

  mutating func add(_ event: Event, at time: UInt64) {
    count += 1
    heap.insert(Item(time: time, order: count, event: event))
  }

  mutating func next(until limit: UInt64) -> (time: UInt64, event: Event)? {
    guard let first = heap.min, first.time <= limit else { return nil }
    let item = heap.removeMin()
    return (item.time, item.event)
  }
}

/// Events of a process name its life, and are dropped in a later one.
enum Event {
  case action(Action.Kind)
  case input(DeviceNumber, life: Int, Input)
  /// The shell commits and sends the effects that wait.
  case drain(DeviceNumber, life: Int)
  /// A commit is written, and synced.
  case written(DeviceNumber, life: Int, Round)
  case committed(DeviceNumber, life: Int, Round)
  case wake(DeviceNumber, life: Int, atMonotonic: UInt64)
  /// Adopted writes are removed from a local store.
  case emptyLocal(DeviceNumber, life: Int, StoreIdentifier)
  case start(DeviceNumber, life: Int)
  case resume(DeviceNumber, life: Int)
  /// A device dials another, unless they are connected.
  case dial(DeviceNumber, to: DeviceNumber)
  case plan(DeviceNumber)
  case established(DeviceNumber, to: DeviceNumber, lives: [Int])
  /// The next message of a pipe may arrive.
  case deliver(ConnectionNumber, end: Int)
  /// A side learns that its connection ended.
  case ended(ConnectionNumber, end: Int)
  /// A silent connection is closed.
  case giveUp(ConnectionNumber)
  /// A stranger's session that proved nothing is closed.
  case strangerTime(ConnectionNumber)
  /// An operation on a carrier ends; `number` is its device's latest there.
  case carry(DeviceNumber, life: Int, CarrierNumber, number: Int, CarrierOrder)
  /// A device that stops does not wait any longer for its carriers.
  case turnOff(DeviceNumber, life: Int)
  /// A pair's partition ends.
  case rejoin(DeviceNumber, DeviceNumber)
}

typealias DeviceNumber = Int
typealias ConnectionNumber = Int
typealias CarrierNumber = Int
