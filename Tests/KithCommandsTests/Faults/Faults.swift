import Foundation
import Testing

/// Real processes under attack, one attack after another: what each test measures would suffer from
/// its neighbours.
@Suite(.serialized, .timeLimit(.minutes(30)))
enum Faults {
  /// A number that the environment may give, such as `KITH_KILLS`.
  static func number(_ name: String, or usual: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
  }

  /// The seed of a test's random choices: what `KITH_SEED` gives, or a random one. It is printed.
  static func seed(_ test: String) -> UInt64 {
    let given = ProcessInfo.processInfo.environment["KITH_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0 ... .max)
    print("\(test): KITH_SEED=\(seed)")
    return seed
  }
}
