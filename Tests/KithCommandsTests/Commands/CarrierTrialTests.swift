import Kith
import Synchronization
import Testing

@testable import KithCommands

@Suite("Trying a carrier")
struct CarrierTrialTests {
  /// In memory, with a fault.
  private final class Storage: CarrierStorage {
    enum Fault: CaseIterable {
      case none, listsNothing, deletesNothing, isLate
    }

    private let fault: Fault
    private let objects = Mutex<[String: [UInt8]]>([:])
    private let listed = Mutex(0)

    init(_ fault: Fault) { self.fault = fault }

    func makePlace(_ place: String) async throws(CarrierFailure) {}

    func list(_ place: String, limit: Int) async throws(CarrierFailure) -> [CarrierObject] {
      let times = listed.withLock { times in
        times += 1
        return times
      }
      if fault == .listsNothing || fault == .isLate && times == 2 { return [] }
      return objects.withLock { $0.map { CarrierObject(name: $0.key, bytes: $0.value.count) } }
    }

    func get(
      _ name: String, from place: String, limit: Int
    ) async throws(CarrierFailure) -> [UInt8]? {
      objects.withLock { $0[name] }
    }

    func put(_ bytes: [UInt8], as name: String, in place: String) async throws(CarrierFailure) {
      objects.withLock { $0[name] = bytes }
    }

    func delete(_ name: String, from place: String) async throws(CarrierFailure) {
      if fault != .deletesNothing { objects.withLock { $0[name] = nil } }
    }
  }

  private func trial(_ fault: Storage.Fault, listing: Duration) async -> CarrierTrial {
    await CarrierTrial.run(Storage(fault), in: "place", listing: listing)
  }

  @Test func `a storage that works passes, also if its listing is late`() async {
    for fault in [Storage.Fault.none, .isLate] {
      let trial = await trial(fault, listing: .seconds(30))
      #expect(trial.problem == nil)
      #expect(trial.steps.map(\.name) == ["put", "list", "get", "delete"])
    }
  }

  @Test func `one whose listing shows nothing does not pass`() async {
    let trial = await trial(.listsNothing, listing: .zero)
    #expect(trial.problem?.contains("does not list") == true)
  }

  @Test func `one that deletes nothing does not pass`() async {
    let trial = await trial(.deletesNothing, listing: .zero)
    #expect(trial.problem?.contains("still lists") == true)
  }
}
