import ArgumentParser
import Foundation
import Kith
import KithTerminal

/// `kith invite`.
struct InviteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Invite another device: print a token, wait for the device, take it in.",
    discussion: """
      The token goes to standard output. It works once, for 10 minutes and 3 tries; whoever has \
      it can ask to join. Give it to `kith join` on the other device and compare the \
      fingerprints shown on both before you say yes.
      """)

  @OptionGroup var options: CommonOptions

  @Flag(name: [.short, .long], help: "Take in whoever has the token, without asking.")
  var yes = false

  @Option(
    help: ArgumentHelp(
      "A host name or address under which the other device reaches this one; may be repeated.",
      discussion: "Otherwise this host's own addresses.", valueName: "host"))
  var address: [String] = []

  func run() async throws {
    _ = try options.accountDirectory()
    guard yes || Terminal.hasInput else {
      throw CommandFailure(
        .refused,
        "nobody can answer here, as standard input is no terminal; pass --yes to take in whoever "
          + "has the token")
    }
    let console = options.console
    let (isJSON, isSure, hosts) = (options.json, yes, address)
    let candidate = try await options.withNode { node in
      let own = Hexadecimal.fingerprint(try await node.report().device)
      return try await node.invite(addresses: hosts) { token in
        // Without its token an invitation is of no use; leaving ends it.
        console.dataOrExit(isJSON ? Self.document(token: token).text(indented: false) : token)
        console.talk("On the other device: kith join TOKEN   (3 tries, 10 minutes)")
      } onJoinRequest: { candidate in
        let name = Columns.printable(candidate.name, limit: 64)
        let address = Columns.printable(candidate.address)
        console.talk(
          "\(name) at \(address) asks to join. Its fingerprint is  \(candidate.fingerprint)")
        console.talk("This device's fingerprint is  \(own)")
        return isSure || Self.confirms(console)
      }
    }
    if isJSON {
      let document = Document.versioned([
        "joined": .object([
          "fingerprint": .string(candidate.fingerprint),
          "id": .string(Hexadecimal.text(candidate.device.bytes)),
          "name": .string(candidate.name),
        ])
      ])
      try console.data(document.text(indented: false))
    }
    console.talk("\(Columns.printable(candidate.name, limit: 64)) is in.")
  }

  private static func document(token: String) -> Document { .versioned(["token": .string(token)]) }

  /// Asks on the terminal; all but yes is no.
  private static func confirms(_ console: Console) -> Bool {
    console.prompt("Does the other device show the same two? Take it in? [y/N] ")
    let answer = readLine()?.trimmingCharacters(in: .whitespaces).lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }
}
