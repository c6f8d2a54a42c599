internal import Foundation

/// Draws the seed of a test's random choices, and prints it.
///
/// - Parameter test: The name of the test in the printed line.
/// - Returns: The value of `KITH_SEED`, or a random one.
package func testSeed(_ test: String) -> UInt64 {
  let given = ProcessInfo.processInfo.environment["KITH_SEED"].flatMap { UInt64($0) }
  let seed = given ?? UInt64.random(in: 0 ... .max)
  print("\(test): KITH_SEED=\(seed)")
  return seed
}
