import ArgumentParser
import Kith
import KithCore

/// `kith sync`.
struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Wait until the other devices have what this one wrote.",
    discussion: "Status 5 if not all of them have it in time.")

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Option(help: ArgumentHelp("How long to wait, in seconds.", valueName: "seconds"))
  var timeout: Double = 5

  @Option(
    help: ArgumentHelp(
      "How many other devices must have it. Otherwise all.", valueName: "number"))
  var devices: Int?

  func validate() throws {
    guard timeout >= 0, timeout <= 86_400 else {
      throw ValidationError("The timeout must be 0 to 86400 seconds.")
    }
  }

  func run() async throws {
    let identifier = try store.identifier.rawValue
    let timeout = Duration.milliseconds(Int(timeout * 1_000))
    let (report, known) = try await options.withNode(needsNode: true) { node in
      let report = try await node.synchronize(identifier, timeout: timeout)
      return (report, try await node.statusReport().devices)
    }
    func names(_ devices: [DeviceID]) -> [String] {
      devices.map { device in
        let id = Hexadecimal.text(device.bytes)
        return known.first { $0.id == id }?.name ?? String(id.prefix(16))
      }
    }
    let document = Document.versioned([
      "complete": .strings(names(report.complete)),
      "incomplete": .strings(names(report.incomplete)),
      "unpublished": .bool(report.hasUnpublishedWrites), "store": .string(identifier),
    ])
    options.print(document) { style in
      var lines = names(report.complete).map { style(.good, "has it   ") + Columns.printable($0) }
      lines += names(report.incomplete).map { style(.warning, "lacks it ") + Columns.printable($0) }
      return lines.joined(separator: "\n")
    }
    let isEnough = devices.map { report.complete.count >= $0 } ?? report.isComplete
    if !isEnough {
      throw CommandFailure(.unreachable, "not all devices have everything yet")
    }
  }
}
