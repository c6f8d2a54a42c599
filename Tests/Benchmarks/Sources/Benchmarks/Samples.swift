struct Samples: Sendable {
  private var seconds: [Double] = []

  var count: Int { seconds.count }

  mutating func add(_ duration: Duration) { seconds.append(duration / .seconds(1)) }

  var median: Double { quantile(0.5) }

  var p99: Double { quantile(0.99) }

  var total: Double { seconds.reduce(0, +) }

  /// Operations per second, if they run one after another.
  var rate: Double { Double(count) / total }

  /// The smallest sample that at least this fraction of all samples does not exceed.
  func quantile(_ part: Double) -> Double {
    let sorted = seconds.sorted()
    guard let last = sorted.last else { return 0 }
    let index = Int((part * Double(sorted.count)).rounded(.up)) - 1
    return sorted.indices.contains(index) ? sorted[index] : last
  }
}
