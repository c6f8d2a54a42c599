internal import KithSimulator
internal import KithTerminal

struct CampaignReport {
  let campaign: Campaign
  let summary: Campaign.Summary
  /// The arguments that repeat the campaign.
  let arguments: String

  func text(_ style: Style) -> String {
    var parts = [faults.text(style), happenings.text(style), totals.text(style)]
    parts += summary.failures.map { failure($0, style) }
    let verdict =
      summary.failures.isEmpty
      ? style(.good, "every promise held in \(Format.count(summary.runs, "run"))")
      : style(
        .bad,
        "\(Format.count(summary.failures.count, "run")) of \(Format.count(summary.runs)) broke a promise"
      )
    return (parts + [verdict]).joined(separator: "\n\n")
  }

  private var faults: Table {
    var table = Table([("FAULT", .left), ("RUNS WITH IT", .right)])
    for fault in Fault.allCases {
      table.add([.init(fault.rawValue), .init(Format.count(summary.faults[fault] ?? 0))])
    }
    return table
  }

  private var happenings: Table {
    var table = Table([("WHAT HAPPENED", .left), ("TIMES", .right)])
    for (what, count) in summary.tally.counts.sorted(by: { $0.key < $1.key }) {
      table.add([.init(what), .init(Format.count(count))])
    }
    return table
  }

  private var totals: Table {
    let seconds = max(0.001, summary.duration / .seconds(1))
    let last = campaign.firstSeed + UInt64(max(0, summary.runs - 1))
    var table = Table()
    table.add(["seeds", "\(campaign.firstSeed) to \(last)"])
    table.add(["time", .init(Format.duration(seconds: seconds))])
    table.add(["rate", "\(Format.decimals(Double(summary.runs) / seconds, 1)) seeds a second"])
    table.add([
      "virtual time",
      .init(
        "\(Format.decimals(summary.deviceHours, 1)) device-hours, "
          + "\(Format.decimals(summary.deviceHours / seconds * 60, 1)) a minute"),
    ])
    table.add(["events", .init(Format.count(summary.events))])
    let convergence = Double(summary.tally.longestConvergence) / 1e6
    table.add(["slowest convergence", "\(Format.decimals(convergence, 1)) virtual seconds"])
    return table
  }

  private func failure(_ result: RunResult, _ style: Style) -> String {
    let seed = result.schedule.seed
    return """
      \(style(.bad, "seed \(seed)")): \(result.violation?.description ?? "")
        \(Format.count(result.schedule.setup.devices, "device")), \
      \(result.schedule.setup.faults.map(\.rawValue).joined(separator: ", "))
        again:    kith-sim replay \(seed)\(arguments)
        shorter:  kith-sim shrink \(seed)\(arguments)
      """
  }

  func json() throws -> String {
    struct Failure: Encodable {
      var seed: UInt64
      var promise: Int
      var text: String
      var trace: String
    }
    struct Report: Encodable {
      var firstSeed: UInt64
      var seeds: Int
      var seconds: Double
      var deviceHours: Double
      var events: Int
      var slowestConvergenceSeconds: Double
      var faults: [String: Int]
      var happenings: [String: Int]
      var failures: [Failure]
      var version = 1
    }
    return try KithSimulatorCommands.json(
      Report(
        firstSeed: campaign.firstSeed, seeds: summary.runs, seconds: summary.duration / .seconds(1),
        deviceHours: summary.deviceHours, events: summary.events,
        slowestConvergenceSeconds: Double(summary.tally.longestConvergence) / 1e6,
        faults: Dictionary(
          Fault.allCases.map { ($0.rawValue, summary.faults[$0] ?? 0) },
          uniquingKeysWith: { old, _ in old }),
        happenings: summary.tally.counts,
        failures: summary.failures.map {
          Failure(
            seed: $0.schedule.seed, promise: $0.violation?.promise.rawValue ?? 0,
            text: $0.violation?.text ?? "", trace: $0.trace)
        }))
  }
}
