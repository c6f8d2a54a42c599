internal import Foundation

/// Draws the seed of a test's random choices, and prints it.
///
/// - Parameter test: The name of the test in the printed line.
/// - Returns: The value of `KITH_SEED`, or a random one.
package func testSeed(_ test: String) -> UInt64 {
  var seed = UInt64.random(in: 0 ... .max)
  if let text = ProcessInfo.processInfo.environment["KITH_SEED"] {
    guard let given = UInt64(text) else { fatalError("KITH_SEED is no number: \(text)") }
    seed = given
  }
  print("\(test): KITH_SEED=\(seed)")
  return seed
}
