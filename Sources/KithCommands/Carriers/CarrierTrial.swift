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
    let storage: any CarrierStorage
    do throws(CarrierFailure) {
      storage = try openCarrier(settings)
    } catch {
      trial.steps.append(Step(name: "open", problem: error.message))
      return trial
    }
    if makesPlace {
      guard await trial.step("make", { try await storage.makePlace(place) }) else { return trial }
    }
    let name = (0..<32).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    let bytes = (0..<4_096).map { _ in UInt8.random(in: 0...255) }
    guard await trial.step("list", { _ = try await storage.list(place, limit: Limits.objects) }),
      await trial.step("put", { try await storage.put(bytes, as: name, in: place) })
    else { return trial }
    await trial.step("get") {
      guard try await storage.get(name, from: place, limit: bytes.count) == bytes else {
        throw CarrierFailure(.unexpected, "The storage changes or loses what is put.")
      }
    }
    await trial.step("delete") { try await storage.delete(name, from: place) }
    // Not every storage can be asked.
    for warning in (try? await storage.warnings(for: place)) ?? [] {
      trial.steps.append(Step(name: "settings", problem: warning, isWarning: true))
    }
    return trial
  }

  /// Returns whether the step works.
  @discardableResult
  private mutating func step(_ name: String, _ body: () async throws -> Void) async -> Bool {
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
        Table.Cell(step.problem.map { Columns.printable($0) } ?? ""),
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
