/// Measured times in seconds, and what can be said of them.
struct Samples: Sendable {
  private var seconds: [Double] = []

  /// How many there are.
  var count: Int { seconds.count }

  /// Adds a measured time.
  mutating func add(_ duration: Duration) { seconds.append(duration.seconds) }

  /// The middle one; 0 where there is none.
  var median: Double { quantile(0.5) }

  /// The time that 99 of 100 keep.
  var p99: Double { quantile(0.99) }

  /// The sum.
  var total: Double { seconds.reduce(0, +) }

  /// How many such a second there would be, one after another.
  var rate: Double { Double(count) / total }

  /// The smallest sample that at least this part of all samples does not exceed.
  ///
  /// - Complexity: O(*n* log *n*).
  func quantile(_ part: Double) -> Double {
    let sorted = seconds.sorted()
    guard let last = sorted.last else { return 0 }
    let index = Int((part * Double(sorted.count)).rounded(.up)) - 1
    return sorted.indices.contains(index) ? sorted[index] : last
  }
}

extension Duration {
  /// The duration in seconds.
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
