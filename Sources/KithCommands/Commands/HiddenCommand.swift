import ArgumentParser
import Kith

/// `kith hidden`.
struct HiddenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hidden",
    abstract: "Show newest writes that the quota does not show, and whose they are.",
    discussion: "They stay, and are shown again when they fit.")

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let identifier = try store.identifier.rawValue
    let (hidden, devices) = try await options.withNode { node in
      let hidden = try await node.hiddenEntries(in: store.existing(at: node))
      return (hidden, try await node.statusReport().devices)
    }
    let report = HiddenReport(
      store: identifier,
      items: hidden.map { item in
        let id = Hexadecimal.text(item.device.bytes)
        let name = devices.first { $0.id == id }?.name
        return HiddenReport.Item(
          key: item.key, value: item.value, bytes: item.bytes,
          device: name ?? String(id.prefix(16)), writtenMilliseconds: item.clock.milliseconds)
      })
    try options.print(report.document) { report.items.isEmpty ? "" : report.text($0) }
    if report.items.isEmpty && !options.json { options.console.talk("Nothing is hidden.") }
  }
}
