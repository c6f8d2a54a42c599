import ArgumentParser
import Kith
import KithTerminal

/// The carriers of a device, among which a person names one.
struct KnownCarriers {
  let all: [CarrierSettings]

  init(of node: any NodeAccess) async throws { all = try await node.carriers() }

  /// The carrier that a person means: its location, or a part that only one has; if there is one
  /// carrier, it need not be named.
  func find(_ text: String?) throws(CommandFailure) -> CarrierSettings {
    guard let text else {
      guard let one = all.first, all.count == 1 else {
        throw CommandFailure(
          all.isEmpty ? .notFound : .usage,
          all.isEmpty
            ? "there is no carrier; add one with: kith carrier add"
            : "there are several carriers; name one: \(names(of: all))")
      }
      return one
    }
    let exact = all.filter { $0.location == text }
    let found = exact.isEmpty ? all.filter { $0.location.contains(text) || $0.kind == text } : exact
    guard let one = found.first else {
      throw CommandFailure(
        .notFound,
        "no carrier is \(Columns.printable(text, limit: 80)); see: kith carrier list")
    }
    guard found.count == 1 else {
      throw CommandFailure(.usage, "several carriers are meant: \(names(of: found))")
    }
    return one
  }

  private func names(of carriers: [CarrierSettings]) -> String {
    carriers.map { Columns.printable($0.location, limit: 80) }.joined(separator: ", ")
  }
}

/// Which carrier a command means.
struct CarrierArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Its location, or a part of it. Default: the only one.", valueName: "carrier"))
  var carrier: String?
}
