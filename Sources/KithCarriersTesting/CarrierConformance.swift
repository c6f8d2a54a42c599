public import Kith

/// Checks that a type keeps the promises of `CarrierStorage`.
///
/// It depends on no test framework, so tests of any kind and programs can run it:
///
/// ```swift
/// @Test func myStorageConforms() async throws {
///   let failures = await CarrierConformance(place: { "kith1/\(fresh)" }) { MyStorage() }.run()
///   #expect(failures.isEmpty)
/// }
/// ```
public struct CarrierConformance: Sendable {
  /// A promise that was not kept.
  public struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
    /// The promise.
    public var rule: Rule
    /// The storage's behaviour instead.
    public var message: String

    /// The rule and what happened instead.
    public var description: String { "\(rule.name): \(message)" }
  }

  /// A promise. ``CarrierConformance/rules`` has all of them.
  public struct Rule: Hashable, Sendable {
    /// A sentence that holds for storage that keeps the promise.
    public var name: String

    init(_ name: String) { self.name = name }
  }

  /// Whether a place that nobody made is not there. False for storage without directories, as S3.
  public var hasPlaces: Bool
  /// How long an operation may go on after its task is cancelled.
  public var cancellationLimit: Duration
  let place: @Sendable () -> String
  let storage: @Sendable () async throws -> any CarrierStorage

  /// Makes a suite.
  ///
  /// - Parameters:
  ///   - hasPlaces: Whether a place that nobody made is not there.
  ///   - cancellationLimit: How long an operation may go on after its task is cancelled.
  ///   - place: Returns the name of a place that was never used before.
  ///   - storage: Makes a value for the storage under test. Each call leads to the same storage, as on
  ///     another device.
  public init(
    hasPlaces: Bool = true, cancellationLimit: Duration = .seconds(5),
    place: @escaping @Sendable () -> String,
    storage: @escaping @Sendable () async throws -> any CarrierStorage
  ) {
    self.hasPlaces = hasPlaces
    self.cancellationLimit = cancellationLimit
    self.place = place
    self.storage = storage
  }

  /// Runs all rules, one after another, each in places of its own.
  ///
  /// - Returns: The promises that were not kept; empty if all were.
  public func run() async -> [Violation] {
    var violations: [Violation] = []
    for (rule, check) in Self.checks {
      do {
        try await check(self)
      } catch let violation as Broken {
        violations.append(Violation(rule: rule, message: violation.message))
      } catch {
        violations.append(Violation(rule: rule, message: "it failed: \(error)"))
      }
    }
    return violations
  }

  /// The rules in the order in which they run.
  public static var rules: [Rule] { checks.map(\.0) }

  private static var checks: [(Rule, @Sendable (Self) async throws -> Void)] {
    [
      (Rule("a new place is empty"), { try await $0.newPlaceIsEmpty() }),
      (Rule("objects come back as they were put"), { try await $0.bytesComeBack() }),
      (Rule("a listing has each object and its size"), { try await $0.listingHasSizes() }),
      (Rule("objects of 4 MiB pass"), { try await $0.largeObjectsPass() }),
      (Rule("a missing object is nil"), { try await $0.missingIsNil() }),
      (Rule("deleting twice is no error"), { try await $0.deletingTwice() }),
      (Rule("a listing beyond its limit fails"), { try await $0.listLimit() }),
      (Rule("an object beyond its limit fails"), { try await $0.getLimit() }),
      (Rule("a place that nobody made is not there"), { try await $0.missingPlace() }),
      (Rule("making a place twice keeps its objects"), { try await $0.makingTwice() }),
      (Rule("two places do not see each other"), { try await $0.twoPlaces() }),
      (Rule("objects put at once are all listed"), { try await $0.concurrentPuts() }),
      (Rule("another value sees the same objects"), { try await $0.anotherDevice() }),
      (Rule("a cancelled operation ends soon"), { try await $0.cancelled() }),
      (Rule("names that could leave the place are refused"), { try await $0.hostileNames() }),
    ]
  }
}

/// A check's finding.
struct Broken: Error {
  var message: String
}
