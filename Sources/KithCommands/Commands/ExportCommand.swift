import ArgumentParser
import Kith
import KithTerminal

/// `kith export`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print all that the store shows, in one canonical form.",
    discussion: """
      Without --json a plain JSON object of keys and values, one key a line; with --json the same \
      inside a document that names the store. Keys stand in the order of their UTF-8 bytes and \
      each value has one form, so devices that show the same print the same bytes. Nothing in it \
      tells of the device. `kith import` reads both. Status 1 if a part of the store was damaged \
      here, is still missing, and nobody has accepted the loss (`kith doctor --accept-loss`).
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let (identifier, entries, isLacking) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      // Asked first, so that data restored meanwhile counts as complete.
      let isLacking = try await node.isLacking(name)
      return (name, try await node.entries(in: name), isLacking)
    }
    let document = ExportDocument(store: identifier, entries: entries)
    try options.console.data((options.json ? document.versioned : document.plain).text())
    guard !isLacking else {
      throw CommandFailure(
        .failure,
        "what is printed is not complete: a part of the store was damaged on this disk, and no other "
          + "device has given it back yet; run the node beside one that has it, then export again. If "
          + "none has it: kith doctor --accept-loss")
    }
  }
}
