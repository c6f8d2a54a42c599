import ArgumentParser
import Kith
import KithTerminal

struct CarrierCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "carrier",
    abstract: "Exchange through storage, for devices that never meet.",
    discussion: """
      A carrier is storage that you have: a folder (of Syncthing, a NAS, a USB stick), a WebDAV \
      collection (Nextcloud), an S3 bucket. Devices put sealed objects there, and need not be on at \
      the same time, or in one network. The storage sees sizes and times, no keys and no values.
      """,
    subcommands: [
      CarrierAddCommand.self, CarrierListCommand.self, CarrierCheckCommand.self,
      CarrierPasswordCommand.self, CarrierRemoveCommand.self,
    ],
    defaultSubcommand: CarrierListCommand.self)
}

/// Which carrier a command means.
struct CarrierArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "Its location, or a part of it. Default: the only one.", valueName: "carrier"))
  var carrier: String?
}

extension CommonOptions {
  /// The directory of the account on carriers, which is tried.
  func place(of node: any NodeAccess) async throws -> String {
    guard let place = try await node.status().carrierPlace else {
      throw CommandFailure.signedOut(directoryURL.path)
    }
    return place
  }
}
