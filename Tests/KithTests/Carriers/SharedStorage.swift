import Kith
import Synchronization

/// Storage in memory that several nodes use, with failures.
final class SharedStorage: CarrierStorage {
  struct State {
    var places: [String: [String: [UInt8]]] = [:]
    var failure: CarrierFailure?
    var operations: [String] = []
    /// The continuations of the changes that workers follow or followed.
    var changes: [AsyncStream<Void>.Continuation] = []
    /// The settings with which it was opened.
    var opened: [CarrierSettings] = []
    /// The storage that is opened instead, by location.
    var others: [String: SharedStorage] = [:]
    /// The locations that do not open.
    var closed: Set<String> = []
    /// Whether puts wait, and how many have waited and were cancelled meanwhile.
    var holdsPuts = false
    var heldPuts = 0
    var cancelledPuts = 0
    /// The size that listings say of each object; nil: its own.
    var listedBytes: Int?
    /// The failures of gets, by name.
    var refused: [String: CarrierFailure] = [:]
    /// The limits of all gets.
    var limits: [Int] = []
  }

  let state = Mutex(State())

  /// Opens itself, unless the location is another's.
  var opener: CarrierOpener {
    { [self] (settings) throws(CarrierFailure) in
      try state.withLock { state throws(CarrierFailure) in
        state.opened.append(settings)
        guard !state.closed.contains(settings.location) else {
          throw CarrierFailure(.unexpected, "It does not open.")
        }
        return state.others[settings.location] ?? self
      }
    }
  }

  static let settings = CarrierSettings(kind: "folder", location: "/shared")

  var objects: [String: [UInt8]] {
    state.withLock { $0.places.values.reduce(into: [:]) { $0.merge($1) { one, _ in one } } }
  }

  func fail(_ failure: CarrierFailure?) { state.withLock { $0.failure = failure } }

  func changes(in place: String) -> AsyncStream<Void>? {
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    state.withLock { $0.changes.append(continuation) }
    return stream
  }

  private func perform<Result: Sendable>(
    _ operation: String, _ place: String, _ body: (inout [String: [UInt8]]) -> Result
  ) throws(CarrierFailure) -> Result {
    try state.withLock { (state) throws(CarrierFailure) in
      if let failure = state.failure { throw failure }
      state.operations.append(operation)
      return body(&state.places[place, default: [:]])
    }
  }

  func makePlace(_ place: String) async throws(CarrierFailure) {
    try perform("make", place) { _ in }
  }

  func list(_ place: String, limit: Int) async throws(CarrierFailure) -> [CarrierObject] {
    let bytes = state.withLock { $0.listedBytes }
    return try perform("list", place) { objects in
      objects.map { CarrierObject(name: $0.key, bytes: bytes ?? $0.value.count) }
    }
  }

  func get(
    _ name: String, from place: String, limit: Int
  ) async throws(CarrierFailure) -> [UInt8]? {
    let refusal = state.withLock { state in
      state.limits.append(limit)
      return state.refused[name]
    }
    if let refusal { throw refusal }
    let bytes = try perform("get", place) { $0[name] }
    guard bytes?.count ?? 0 <= limit else {
      throw CarrierFailure(.tooMuch, "The object is larger than was asked for.")
    }
    return bytes
  }

  func put(_ bytes: [UInt8], as name: String, in place: String) async throws(CarrierFailure) {
    if state.withLock({ $0.holdsPuts }) { state.withLock { $0.heldPuts += 1 } }
    while state.withLock({ $0.holdsPuts }) {
      guard (try? await Task.sleep(for: .milliseconds(5))) != nil else {
        state.withLock { $0.cancelledPuts += 1 }
        throw CarrierFailure(.unexpected, "The put was cancelled.")
      }
    }
    try perform("put", place) { $0[name] = bytes }
  }

  func delete(_ name: String, from place: String) async throws(CarrierFailure) {
    try perform("delete", place) { $0[name] = nil }
  }
}
