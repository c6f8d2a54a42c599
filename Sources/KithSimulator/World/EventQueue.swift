internal import HeapModule
internal import KithCore

/// Future events, by virtual time, then in the order of their requests.
struct EventQueue {
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

  /// Requests an event at a time, in microseconds since the run began.
  mutating func add(_ event: Event, at time: UInt64) {
    count += 1
    heap.insert(Item(time: time, order: count, event: event))
  }

  /// Takes the next event up to a time.
  mutating func next(until limit: UInt64) -> (time: UInt64, event: Event)? {
    guard let first = heap.min, first.time <= limit else { return nil }
    let item = heap.removeMin()
    return (item.time, item.event)
  }
}

/// An event. One of a process names its life, and is void in another.
enum Event {
  case action(Action.Kind)
  /// An input for the core, a moment after its cause.
  case input(DeviceNumber, life: Int, Input)
  /// The shell commits and sends the effects that wait.
  case drain(DeviceNumber, life: Int)
  /// A commit reaches the disk.
  case committed(DeviceNumber, life: Int, Round)
  /// The shell has something to do.
  case wake(DeviceNumber, life: Int, atMonotonic: UInt64)
  /// The local stores are emptied of the adopted writes.
  case emptyLocal(DeviceNumber, life: Int, StoreIdentifier)
  /// A dead process starts again.
  case start(DeviceNumber, life: Int)
  /// A stopped process continues.
  case resume(DeviceNumber, life: Int)
  /// A device dials another, unless they are connected.
  case dial(DeviceNumber, to: DeviceNumber)
  /// A device's overlay decides again.
  case plan(DeviceNumber)
  /// A handshake is done.
  case established(DeviceNumber, to: DeviceNumber, lives: [Int])
  /// The next message of a pipe may arrive.
  case deliver(ConnectionNumber, end: Int)
  /// A side learns that its connection ended.
  case ended(ConnectionNumber, end: Int)
  /// A silent connection is given up.
  case giveUp(ConnectionNumber)
  /// A stranger's session that proved nothing is closed.
  case strangerTime(ConnectionNumber)
  /// A pair's partition ends.
  case rejoin(DeviceNumber, DeviceNumber)
}

typealias DeviceNumber = Int
typealias ConnectionNumber = Int
