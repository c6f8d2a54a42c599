/// Measured times in seconds, with their statistics.
struct Samples: Sendable {
  private var seconds: [Double] = []

  var count: Int { seconds.count }

  mutating func add(_ duration: Duration) { seconds.append(duration.seconds) }

  var median: Double { quantile(0.5) }

  /// The 99th percentile.
  var p99: Double { quantile(0.99) }

  /// The sum.
  var total: Double { seconds.reduce(0, +) }

  /// The number of such operations per second, one after another.
  var rate: Double { Double(count) / total }

  /// Returns the smallest sample that at least this fraction of all samples does not exceed.
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
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
