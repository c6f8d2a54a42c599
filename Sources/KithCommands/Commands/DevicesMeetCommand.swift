import ArgumentParser
import Kith
import KithTerminal

struct DevicesMeetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "meet",
    abstract: "Have the running node connect to another device's address.",
    discussion: """
      For a device that is not found on the LAN. The node tries the address until it stops. Once \
      it has met a device there it remembers the address, as with `kith run --peer`.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(help: ArgumentHelp("The other device's address.", valueName: "host:port"))
  var address: String

  func validate() throws {
    do throws(KithError) {
      try Node.checkPeers([address])
    } catch {
      throw ValidationError(error.message)
    }
  }

  func run() async throws {
    try await options.withNode(ofAccount: true, needsNode: true) { try await $0.meet(address) }
    try options.print(.versioned(["address": .string(address)]))
    options.console.talk("The node connects to \(address) from now on. See: kith devices")
  }
}
