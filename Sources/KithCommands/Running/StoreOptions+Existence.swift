import ArgumentParser
import Foundation
import Kith
import KithTerminal

extension StoreOptions {
  /// The default store exists before its first write, because its name cannot be mistyped.
  var isDefault: Bool {
    get throws(CommandFailure) {
      guard store != nil else { return true }
      let usual = try? Self.identifier(
        option: nil, environment: ProcessInfo.processInfo.environment)
      return try identifier == usual
    }
  }

  /// Returns the store that a command reads; throws if the account has none of that name.
  func existing(at node: any NodeAccess) async throws -> String {
    guard try await isThere(at: node) else { throw try missing("see: kith status") }
    return try identifier.rawValue
  }

  func isThere(at node: any NodeAccess) async throws -> Bool {
    if try isDefault { return true }
    let name = try identifier
    return try await node.status().stores.contains { $0.identifier == name }
  }

  fileprivate func missing(_ advice: String) throws(CommandFailure) -> CommandFailure {
    CommandFailure(
      .notFound,
      "there is no store \"\(Columns.printable(try identifier.rawValue))\" here; \(advice)")
  }
}

struct WrittenStoreOptions: ParsableArguments {

  @Flag(
    help: ArgumentHelp(
      "Create the store if it is missing. Default: ask. Not needed without --store."))
  var create = false

  @OptionGroup var store: StoreOptions

  /// Returns the store that a command writes to. A new name needs a confirmation or `--create`: a
  /// mistyped store would stay on all devices for ever.
  func writable(at node: any NodeAccess, _ console: Console) async throws -> String {
    let name = try store.identifier.rawValue
    guard !create, try await !store.isThere(at: node) else { return name }
    guard Terminal.hasInput else {
      throw try store.missing("see: kith status; to create it, pass --create")
    }
    console.warn("there is no store \"\(Columns.printable(name))\" here; see: kith status")
    let isWanted = Confirmation.isGiven(
      "It would be created on all devices, and its name cannot be removed. Create it?", console)
    guard isWanted else { throw CommandFailure(.refused, "nothing was written") }
    return name
  }
}
