import ArgumentParser
import Foundation
import Kith
import KithTerminal

/// `kith join`.
struct JoinCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "join",
    abstract: "Join the account that an invitation's token names, with this as a new device.",
    discussion: """
      Get the token from `kith invite` on a device of the account. Compare the fingerprints \
      shown here with those shown there.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(help: "The token; - reads it from standard input, where no other user sees it.")
  var token: String

  @Option(
    help: ArgumentHelp(
      "Where the inviting device is, instead of the addresses in the token.",
      valueName: "host:port"))
  var peer: String?

  @Option(help: "What people call this device. Otherwise the host's name.")
  var name: String?

  @OptionGroup var device: NewDeviceOptions

  func validate() throws {
    if let peer { try PeerOption.check([peer]) }
  }

  func run() async throws {
    let console = options.console
    if token == "-" && Terminal.hasInput { console.prompt("Token: ") }
    let text = token == "-" ? try InputText.line(of: "-") : token
    let path = options.directoryURL.path
    let (name, peer) = (name ?? DeviceName.ofHost, peer)
    let onMeeting: @Sendable (InvitingDevice, String) -> Void = { inviter, fingerprint in
      let name = Columns.printable(inviter.name, limit: 64)
      let address = Columns.printable(inviter.address)
      console.talk("\(name) at \(address) invites. Its fingerprint is  \(inviter.fingerprint)")
      console.talk("This device's fingerprint is  \(fingerprint)")
      console.talk("Compare both with what the other device shows, and say yes there.")
    }
    let summary: AccountSummary
    let passphrase = try device.passphrase()
    if let accounts = try options.signedOutAccounts(new: passphrase) {
      summary = try await accounts.use {
        try await $0.signIn(token: text, name: name, address: peer, onMeeting: onMeeting)
      }
    } else {
      summary = try await Node.join(
        directory: path, name: name, token: text, address: peer, passphrase: passphrase,
        onMeeting: onMeeting)
    }
    let directory = try Accounts.deviceDirectory(in: path)
    var report = AccountReport(summary, directory: directory)
    report.others = try await Self.others(in: directory, passphrase)
    let result = report
    try options.print(result.document, text: result.text)
    console.talk("Joined. Start the node with: kith run")
  }

  /// The devices that this one has joined.
  private static func others(
    in directory: String, _ passphrase: Passphrase?
  ) async throws -> [DeviceFacts] {
    var configuration = Node.Configuration(directory: directory)
    configuration.passphrase = passphrase?.answer
    return try await Node.open(configuration).use { node in
      StatusReport(NodeReport(node.status), processID: nil).devices.filter { !$0.isSelf }
    }
  }
}
