import ArgumentParser
import Kith
import KithCore
import KithTerminal

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Wait until the other devices have this one's writes.",
    discussion: """
      Looks at the carriers at once. Ends when all devices have the writes, or when all carriers \
      hold them and no connected device lacks them; with --devices, when so many have them. \
      Status 5, with the document, if that is not so in time. Needs a running node.
      """)

  /// In seconds; a node has the same limit.
  static let longestWait = 3_600.0

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The longest wait.", valueName: "seconds"))
  var timeout: Double = 5

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How many devices must have them. Default: all.", valueName: "number"))
  var devices: Int?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard timeout >= 0, timeout <= Self.longestWait else {
      throw ValidationError("The timeout must be 0 to 3600 seconds.")
    }
    guard devices ?? 0 >= 0 else {
      throw ValidationError("The number of devices must be 0 or more.")
    }
  }

  func run() async throws {
    _ = try options.accountDirectory()
    let store = try store.identifier
    let (identifier, devices) = (store.rawValue, devices)
    let timeout = Duration.milliseconds(Int(timeout * 1_000))
    let (report, status) = try await options.withNode(needsNode: true) { node in
      let report = try await node.waitUntilSynced(
        identifier, timeout: timeout, devices: devices)
      return (report, try await node.status())
    }
    func names(_ devices: [DeviceID]) -> [String] { devices.map(status.plainName) }
    try options.print(report.document(store: identifier, status: status)) { style in
      var lines = names(report.complete).map {
        style(.good, "up to date  ") + Columns.printable($0)
      }
      lines += names(report.incomplete).map {
        style(.warning, "behind      ") + Columns.printable($0)
      }
      lines += report.carriers.map { carrier in
        style(.good, "stored on   ") + Columns.printable(carrier.location) + ", as seen "
          + Format.ago(carrier.sinceMilliseconds, now: Moment.now)
      }
      return lines.joined(separator: "\n")
    }
    let isEnough =
      devices.map { report.complete.count >= $0 }
      ?? (report.isComplete || !report.carriers.isEmpty)
    if !isEnough {
      let reason = SyncShortfall(
        report: report, status: status, store: store, wanted: devices,
        nowMilliseconds: Moment.now)
      throw CommandFailure(.unreachable, reason.description)
    }
    if report.complete.isEmpty && report.incomplete.isEmpty {
      options.console.talk("kith: \(SyncShortfall.noOthers)")
    }
  }
}
