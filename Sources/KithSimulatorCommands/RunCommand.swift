internal import ArgumentParser
internal import Foundation
internal import KithSimulator
internal import KithTerminal

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Run many seeds.",
    discussion: """
      Ends after the seeds, the minutes, or ten failures. Names for each failure the
      broken promise and the command that repeats it.
      """)

  @Option(help: ArgumentHelp("How many seeds.", valueName: "number")) var seeds: Int?
  @Option(help: ArgumentHelp("How many minutes.", valueName: "number")) var minutes: Double?
  @Option(help: ArgumentHelp("The first seed. Default: random.", valueName: "seed"))
  var first: UInt64?
  @Option(
    help: ArgumentHelp("Runs at one time. Default: one a processor.", valueName: "number"))
  var workers: Int?
  @Flag(help: "Print JSON.") var json = false
  @Flag(name: .shortAndLong, help: "Show no progress.") var quiet = false
  @OptionGroup var options: SimOptions

  func run() async throws {
    let bounds = try options.bounds()
    if let seeds, seeds < 1 { throw CommandFailure(.usage, "--seeds takes 1 or more") }
    if let minutes, !(minutes > 0 && minutes < 100_000) {
      throw CommandFailure(.usage, "--minutes takes a number above 0")
    }
    let campaign = Campaign(
      firstSeed: first ?? UInt64.random(in: 1...999_999_999),
      seeds: seeds ?? (minutes == nil ? 200 : nil),
      limit: minutes.map { .milliseconds(Int64($0 * 60_000)) }, bounds: bounds,
      workers: workers ?? ProcessInfo.processInfo.activeProcessorCount)
    let progress = CampaignProgress(campaign, isQuiet: quiet || json)
    let summary = await campaign.run { progress.update($0) }
    progress.finish()
    let report = CampaignReport(campaign: campaign, summary: summary, arguments: options.text)
    try Console().data(json ? report.json() : report.text(Style.output))
    if !summary.failures.isEmpty { throw ExitCode(1) }
  }
}

private final class CampaignProgress {
  private let campaign: Campaign
  private let isShown: Bool
  private let console = Console(tool: "kith-sim")
  private var last = ContinuousClock.now
  private var failures = 0

  init(_ campaign: Campaign, isQuiet: Bool) {
    self.campaign = campaign
    isShown = Terminal.hasTalk && !isQuiet
  }

  /// Redraws at most ten times a second.
  func update(_ summary: Campaign.Summary) {
    if summary.failures.count > failures, let failure = summary.failures.last {
      failures = summary.failures.count
      finish()
      console.warn("seed \(failure.schedule.seed): \(failure.violation?.description ?? "")")
    }
    let now = ContinuousClock.now
    guard isShown, now - last > .milliseconds(100) else { return }
    last = now
    let total = campaign.seeds.map { "/\(Format.count($0))" } ?? ""
    let seconds = max(0.001, summary.duration / .seconds(1))
    let line =
      "\(Format.count(summary.runs))\(total) seeds · "
      + "\(Format.decimals(Double(summary.runs) / seconds, 1))/s · "
      + "\(Format.decimals(summary.deviceHours / seconds * 60, 1)) device-hours/min · "
      + Format.count(summary.failures.count, "failure")
    console.prompt("\r\u{1B}[K" + String(line.prefix(Terminal.columns - 1)))
  }

  /// Clears the line.
  func finish() {
    if isShown { console.prompt("\r\u{1B}[K") }
  }
}

extension Campaign.Summary {
  /// Virtual hours, summed over all devices.
  var deviceHours: Double { Double(deviceMicroseconds) / 3.6e9 }
}
