internal import HeapModule
internal import KithCore

/// What is to happen, by virtual time; of one moment, in the order in which it was asked for.
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

  /// Asks for an event at a time, in microseconds since the run began.
  mutating func add(_ event: Event, at time: UInt64) {
    count += 1
    heap.insert(Item(time: time, order: count, event: event))
  }

  /// The next event not after a time.
  mutating func next(until limit: UInt64) -> (time: UInt64, event: Event)? {
    guard let first = heap.min, first.time <= limit else { return nil }
    let item = heap.removeMin()
    return (item.time, item.event)
  }
}

/// Something that happens at a moment. Those that are about a process name its life, and mean
/// nothing in another.
enum Event {
  case action(Action.Kind)
  /// Something for the core that comes a moment after what caused it.
  case input(DeviceNumber, life: Int, Input)
  /// The shell commits and sends what waits.
  case drain(DeviceNumber, life: Int)
  /// A commit reaches the disk.
  case committed(DeviceNumber, life: Int, Round)
  /// The core asked for a tick.
  case tick(DeviceNumber, life: Int, atMonotonic: UInt64)
  /// A failed disk is tried again.
  case retry(DeviceNumber, life: Int)
  /// The local stores are emptied of what was adopted.
  case emptyLocal(DeviceNumber, life: Int, StoreIdentifier)
  /// A dead process starts again.
  case start(DeviceNumber, life: Int)
  /// A process goes on.
  case resume(DeviceNumber, life: Int)
  /// A device dials another unless they are connected.
  case dial(DeviceNumber, to: DeviceNumber)
  /// A device decides anew whom it dials.
  case plan(DeviceNumber)
  /// A handshake is done.
  case established(DeviceNumber, to: DeviceNumber, lives: [Int])
  /// The next message of a pipe may arrive.
  case deliver(ConnectionNumber, end: Int)
  /// A side learns that its connection ended.
  case ended(ConnectionNumber, end: Int)
  /// A connection on which nothing passes is given up.
  case giveUp(ConnectionNumber)
  /// A session with a stranger that has not proved to be a member is closed.
  case strangerTime(ConnectionNumber)
  /// Nothing keeps these two apart any more.
  case rejoin(DeviceNumber, DeviceNumber)
}

typealias DeviceNumber = Int
typealias ConnectionNumber = Int

/// What one commit makes durable, and what is done after it.
struct Round {
  var mutations: [KithCore.Mutation]
  var effects: ArraySlice<KithCore.Effect>
}
