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
}
