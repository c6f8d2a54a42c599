import Testing

@testable import Benchmarks
@testable import KithTerminal

@Suite struct BenchReportTests {
  @Test func `a bench says what misses`() {
    var report = BenchReport(isQuick: true)
    report.add("commit", "bare durable commit", 0.00012, .seconds)
    report.add("crowdedSets", "durable sets, 64 tasks", 15_000, .perSecond, .atLeast(20_000))
    report.add("read", "read of a present key", 80e-9, .seconds, .atMost(200e-9))
    #expect(!report.isKept)
    #expect(
      report.text(.plain) == """
        FIGURE                  MEASURED      BUDGET
        bare durable commit       120 µs
        durable sets, 64 tasks  15,000/s  ≥ 20,000/s  miss
        read of a present key      80 ns    ≤ 200 ns  ok
        """)
  }

  @Test func `a missed goal is shown and fails nothing`() {
    var report = BenchReport(isQuick: true)
    report.add("start", "start", 2, .seconds, .atMost(1), isRequired: false)
    #expect(report.isKept)
    #expect(report.text(.plain).contains("miss"))
  }
}
