@testable import Kith
@testable import KithCommands
@testable import KithCore
@testable import KithTerminal

/// Measures operations without a peer: reads from memory and admission.
enum ReadBench {
  private static let reads = 200_000
  private static let admissions = 15

  /// The mean seconds for one read of a present key.
  static func read(_ store: KeyValueStore) throws -> Double {
    let keys = store.keys.map(\.text)
    guard !keys.isEmpty else {
      throw CommandFailure(.failure, "the bench has nothing to read")
    }
    var found = 0
    let time = ContinuousClock().measure {
      for index in 0..<reads where store.value(forKey: keys[index % keys.count]) != nil {
        found += 1
      }
    }
    guard found == reads else { throw CommandFailure(.failure, "the bench missed a present key") }
    return time / .seconds(1) / Double(reads)
  }

  /// Measures admission of a full, over-quota store.
  static func admission(of load: AdmissionLoad) throws -> (times: Samples, steps: Int) {
    var samples = Samples()
    let clock = ContinuousClock()
    for _ in 0..<admissions {
      let start = clock.now
      let shown = load.admit()
      samples.add(clock.now - start)
      guard shown > 0 else { throw CommandFailure(.failure, "the bench's admission shows nothing") }
    }
    return (samples, load.steps)
  }
}
