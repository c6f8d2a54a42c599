import Foundation

@testable import Kith
@testable import KithCore
@testable import KithCrypto
@testable import KithStorage

/// Runs one path of the code once, so that callgrind counts its instructions: only those inside
/// `kithMeasured` count. `Tests/instructions` starts it. With `--time`, prints milliseconds.
@main
enum Instructions {
  static func main() throws {
    guard let name = CommandLine.arguments.dropFirst().first, let path = Path(rawValue: name) else {
      let names = Path.allCases.map(\.rawValue).joined(separator: ", ")
      FileHandle.standardError.write(Data("kith-instructions: name one of \(names)\n".utf8))
      exit(64)
    }
    let root = FileManager.default.temporaryDirectory
      .appending(path: "kith-instructions-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: root) }
    let time = try path.run(in: root)
    if CommandLine.arguments.contains("--time") { print("\(path.rawValue) \(time * 1_000)") }
  }
}

/// The measured paths.
enum Path: String, CaseIterable {
  /// A durable, published set: claim, seal, sign, commit.
  case set
  /// A change set of one entry: check, open, merge, commit, answer.
  case receive
  /// An empty device pulls a full store of 1,024 change sets; both sides count.
  case catchUp
  /// The same store in one change set.
  case catchUpOne
  /// A device with a full store is made of its database.
  case start
  /// A turn on an empty carrier, which puts a full store.
  case carrierTurn

  /// How often the short paths run.
  private static let rounds = 100
  private static let keys = 1_024
  /// 1,024 such values come close to the default policy's limit.
  private static let valueBytes = 900

  /// Returns the seconds of the measured part.
  func run(in root: URL) throws -> Double {
    let pair = try DevicePair(in: root)
    switch self {
    case .set, .receive: return try runShort(pair)
    case .catchUp, .catchUpOne:
      try Self.fill(pair, inOne: self == .catchUpOne)
      try pair.open()
      let time = try measure {
        pair.connect()
        pair.carry()
      }
      let pulled = try pair.stores[1].usage.keys
      precondition(pulled == Self.keys, "the device did not catch up")
      return time
    case .start:
      try Self.fill(pair, inOne: false)
      return try measure { _ = try pair.start(0) }
    case .carrierTurn:
      try Self.fill(pair, inOne: false)
      return try turn(of: pair)
    }
  }

  private func runShort(_ pair: DevicePair) throws -> Double {
    try pair.open()
    pair.connect()
    pair.carry()
    var time = 0.0
    for round in 0..<Self.rounds {
      let value = PropertyListValue.integer(Int64(round))
      let set = { try pair.stores[0].set(value, forKey: "key \(round % 16)") }
      if self == .set { time += try measure(set) } else { try set() }
      let sent = pair.takeAll(from: 0)
      let receive = { for event in sent { pair.pass(event, from: 0) } }
      if self == .receive { time += try measure(receive) } else { receive() }
      pair.carry()
    }
    precondition(pair.stores[1].value(forKey: "key 0") != nil, "nothing was received")
    return time
  }

  /// Fills the first device's store, with or without a change set for each key, and leaves the second
  /// device empty.
  private static func fill(_ pair: DevicePair, inOne: Bool) throws {
    guard let store = StoreIdentifier(DevicePair.store) else { preconditionFailure("a valid name") }
    let first = try pair.devices[0].store(store, policy: .standard)
    let operations = try (0..<keys).map { index in
      let text = "\(index) "
      let value = text + String(repeating: "v", count: valueBytes - text.utf8.count)
      return try KithCore.Operation.encoding(.string(value), forKey: "key.\(index)")
    }
    try pair.withWitness {
      for group in inOne ? [operations] : operations.map({ [$0] }) {
        try pair.devices[0].engine.write(store, group, origin: .owner)
        pair.carry()
      }
    }
    let filled = try first.usage.keys
    precondition(filled == keys, "the store is not full")
  }

  private func turn(of pair: DevicePair) throws -> Double {
    let id = CarrierID(Blake2b.digest128(Array("bench".utf8)))
    var objects: [ObjectName: [UInt8]] = [:]
    return try measure {
      var orders = try pair.hand(.carrier(id, .attached(shortestMilliseconds: 5_000)))
      orders += try pair.hand(.carrier(id, .asked))
      while !orders.isEmpty {
        let order = orders.removeFirst()
        switch order {
        case .list: orders += try pair.hand(.carrier(id, .listed(objects.mapValues(\.count))))
        case .put(let object):
          let sealed = try object.sealed(from: pair.storage(0)) ?? []
          objects[object.name] = sealed
          orders += try pair.hand(.carrier(id, .stored(object.name, bytes: sealed.count)))
        case .delete: orders += try pair.hand(.carrier(id, .deleted))
        case .get, .rest: break
        }
      }
      precondition(!objects.isEmpty, "the turn put nothing")
    }
  }
}

extension DevicePair {
  /// Hands an input to the first device's shell, commits, and returns the orders for carriers.
  fileprivate func hand(_ input: Input) throws -> [CarrierOrder] {
    try devices[0].engine.state.withLock { state in
      let now = devices[0].engine.clock()
      _ = state.shell.handle(input, at: now)
      var orders: [CarrierOrder] = []
      while case .round(let round) = state.shell.next(at: now) {
        let mutations = round.mutations
        if !mutations.isEmpty { try storage(0).commit(mutations) }
        for case .carrier(_, let order) in round.afterCommit + round.beforeCommit {
          orders.append(order)
        }
        _ = state.shell.committed()
      }
      return orders
    }
  }
}

/// Returns the seconds of a body, whose instructions callgrind counts.
func measure(_ body: () throws -> Void) throws -> Double {
  var result = Result<Void, any Error>.success(())
  let start = ContinuousClock.now
  withoutActuallyEscaping(body) { body in
    var work: () -> Void = { result = Result(catching: body) }
    withUnsafeMutablePointer(to: &work) { kithMeasured($0) }
  }
  let time = ContinuousClock.now - start
  try result.get()
  return time / .seconds(1)
}

/// `Tests/instructions` knows the measured part by its name.
@inline(never)
func kithMeasured(_ work: UnsafeMutableRawPointer) {
  work.assumingMemoryBound(to: (() -> Void).self).pointee()
}
