import CoreMetrics
import ExampleDevice
import Synchronization

/// Metrics that are printed at the end. A real program hands them to Prometheus or the like; what
/// Kith counts is the same.
final class PrintingMetrics: MetricsFactory {
  /// One series: how often it was recorded, and the sum.
  final class Series: CounterHandler, RecorderHandler, TimerHandler, Sendable {
    private let state = Mutex((times: 0, sum: Int64(0)))

    private func add(_ value: Int64) {
      state.withLock { $0 = ($0.times + 1, $0.sum &+ value) }
    }

    func increment(by amount: Int64) { add(amount) }
    func record(_ value: Int64) { add(value) }
    func record(_ value: Double) { add(Int64(value)) }
    func recordNanoseconds(_ duration: Int64) { add(duration) }
    func reset() { state.withLock { $0 = (0, 0) } }
    var text: String { state.withLock { "\($0.sum) in \($0.times)" } }
  }

  private let all = Mutex<[String: Series]>([:])

  private func series(_ label: String) -> Series {
    all.withLock { all in
      if let series = all[label] { return series }
      let series = Series()
      all[label] = series
      return series
    }
  }

  func printAll() {
    for (label, series) in all.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
      say("metric \(label) \(series.text)")
    }
  }

  func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    series(label)
  }
  func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    series(label)
  }
  func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    series(label)
  }
  func destroyCounter(_ handler: any CounterHandler) {}
  func destroyRecorder(_ handler: any RecorderHandler) {}
  func destroyTimer(_ handler: any TimerHandler) {}
}
