import Kith
import Synchronization

/// Storage in memory that several nodes use, with failures.
final class SharedStorage: CarrierStorage {
  struct State {
    var places: [String: [String: [UInt8]]] = [:]
    var failure: CarrierFailure?
    var operations: [String] = []
    /// Of the changes that workers follow or followed.
    var changes: [AsyncStream<Void>.Continuation] = []
  }

  let state = Mutex(State())

  /// Opens itself, whatever the settings say.
  var opener: CarrierOpener {
    { [self] (_) throws(CarrierFailure) in self }
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
    try perform("list", place) { objects in
      objects.map { CarrierObject(name: $0.key, bytes: $0.value.count) }
    }
  }

  func get(
    _ name: String, from place: String, limit: Int
  ) async throws(CarrierFailure) -> [UInt8]? {
    try perform("get", place) { $0[name] }
  }

  func put(_ bytes: [UInt8], as name: String, in place: String) async throws(CarrierFailure) {
    try perform("put", place) { $0[name] = bytes }
  }

  func delete(_ name: String, from place: String) async throws(CarrierFailure) {
    try perform("delete", place) { $0[name] = nil }
  }
}
