import Kith
import KithCarriers
import KithCore
import KithTerminal

/// Tries a carrier's four operations, with an object that no device takes for one of the account's.
struct CarrierTrial {
  struct Step {
    var name: String
    /// Nil: it works.
    var problem: String?
    var isWarning = false

    var verdict: Finding.Verdict { problem == nil ? .good : isWarning ? .note : .problem }
  }

  private(set) var steps: [Step] = []

  /// The first one that is more than a warning; nil if the carrier works.
  var problem: String? { steps.first { $0.problem != nil && !$0.isWarning }?.problem }

  /// `place`: the account's directory; `makesPlace`: makes it first.
  static func run(
    _ settings: CarrierSettings, in place: String, makesPlace: Bool = false
  ) async -> CarrierTrial {
    var trial = CarrierTrial()
    do throws(CarrierFailure) {
      return await run(try openCarrier(settings), in: place, makesPlace: makesPlace)
    } catch {
      trial.steps.append(Step(name: "open", problem: error.message))
      return trial
    }
  }

  /// `listing`: how old a listing may be.
  static func run(
    _ storage: any CarrierStorage, in place: String, makesPlace: Bool = false,
    listing: Duration = .seconds(5)
  ) async -> CarrierTrial {
    var trial = CarrierTrial()
    if makesPlace {
      guard await trial.step("make", { try await storage.makePlace(place) }) else { return trial }
    }
    let name = (0..<32).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    let bytes = (0..<4_096).map { _ in UInt8.random(in: 0...255) }
    guard await trial.step("list", { _ = try await storage.list(place, limit: Limits.objects) }),
      await trial.step("put", { try await storage.put(bytes, as: name, in: place) })
    else { return trial }
    await trial.step("list", again: true) {
      guard try await isListed(name, true, in: place, of: storage, within: listing) else {
        throw CarrierFailure(
          .unexpected, "The storage does not list what was put, so no other device would find it.")
      }
    }
    await trial.step("get") {
      guard try await storage.get(name, from: place, limit: bytes.count) == bytes else {
        throw CarrierFailure(.unexpected, "The storage changes or loses what is put.")
      }
    }
    await trial.step("delete") {
      try await storage.delete(name, from: place)
      guard try await isListed(name, false, in: place, of: storage, within: listing) else {
        throw CarrierFailure(
          .unexpected, "The storage still lists what was deleted, so it would fill up.")
      }
    }
    // Not every storage can be asked.
    for warning in (try? await storage.warnings(for: place)) ?? [] {
      trial.steps.append(Step(name: "settings", problem: warning, isWarning: true))
    }
    return trial
  }

  private static let look = Duration.milliseconds(500)

  /// Whether the object comes to be listed, or not listed, as wanted.
  private static func isListed(
    _ name: String, _ isWanted: Bool, in place: String, of storage: any CarrierStorage,
    within limit: Duration
  ) async throws -> Bool {
    let end = ContinuousClock.now + limit
    while true {
      let listed = try await storage.list(place, limit: Limits.objects)
      if listed.contains(where: { $0.name == name }) == isWanted { return true }
      if ContinuousClock.now >= end { return false }
      try await Task.sleep(for: look)
    }
  }

  /// Returns whether the step works. `again`: its result replaces that of the step of this name.
  @discardableResult
  private mutating func step(
    _ name: String, again: Bool = false, _ body: () async throws -> Void
  ) async -> Bool {
    if again { steps.removeAll { $0.name == name } }
    do {
      try await body()
      steps.append(Step(name: name))
      return true
    } catch {
      steps.append(Step(name: name, problem: (error as? CarrierFailure)?.message ?? "\(error)"))
      return false
    }
  }

  func text(_ style: Style) -> String {
    var table = Table()
    for step in steps {
      table.add([
        Table.Cell(step.verdict.rawValue, step.verdict.tone), Table.Cell(step.name, .strong),
        Table.Cell(step.problem.map { Columns.sentence($0) } ?? ""),
      ])
    }
    return table.text(style)
  }

  func document(_ settings: CarrierSettings) -> Document {
    .versioned([
      "carrier": .string(settings.location), "works": .bool(problem == nil),
      "steps": .list(
        steps.map { step in
          .object([
            "name": .string(step.name), "problem": .string(step.problem),
            "verdict": .string(step.verdict.rawValue),
          ])
        }),
    ])
  }
}
