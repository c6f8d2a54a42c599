import ArgumentParser
import Kith

/// `kith export`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print all that the store shows, in one canonical form.",
    discussion: """
      Without --json a plain JSON object of keys and values, one key a line; with --json the same \
      inside a document that names the store. Keys stand in the order of their UTF-8 bytes and \
      each value has one form, so devices that show the same print the same bytes. Nothing in it \
      tells of the device. `kith import` reads both.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let (identifier, entries) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      return (name, try await node.entries(in: name))
    }
    let document = ExportDocument(store: identifier, entries: entries)
    try options.console.data((options.json ? document.versioned : document.plain).text())
  }
}
