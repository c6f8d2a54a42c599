import ArgumentParser
import Kith
import KithCarriers
import KithCore
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

struct CarrierListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the carriers, and what they hold.",
    discussion: """
      HOLDS ALL: since when a listing shows everything that this device covers. \
      kith devices says whether another device has got it.
      """)

  @Flag(
    name: [.customShort("l"), .long],
    help: "Print the last listing, objects and sizes too.")
  var long = false

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(reads: true) { try await $0.status() }
    let report = CarriersReport(status: status, isLong: long, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
    if !options.json, status.carriers.isEmpty {
      options.console.talk("There is no carrier. Add one with: kith carrier add")
    }
  }
}

struct CarrierCheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Try all four operations on a carrier.",
    discussion: """
      Lists, puts, gets and deletes an object of 4 KiB that no device takes for one of its own. \
      Warns of settings that keep deleted objects. Status 7 if something does not work.
      """)

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let (settings, place) = try await options.withNode(ofAccount: true, reads: true) { node in
      (try await node.carriers().find(meant.carrier), try await options.place(of: node))
    }
    let trial = await CarrierTrial.run(settings, in: place)
    try options.print(trial.document(settings), text: trial.text)
    guard trial.problem == nil else {
      throw CommandFailure(.unhealthy, "the carrier cannot be used")
    }
  }
}

struct CarrierPasswordCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "password",
    abstract: "Give a carrier new credentials.",
    discussion: """
      If the carrier is the account's, its other devices learn them, except those that can be \
      reached only through this carrier: there, run this command again. Change the password at the storage first, above all \
      after a device was revoked: it may still know the old one.
      """)

  @OptionGroup var credentials: CarrierCredentialsOptions

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let location = try await options.withNode(ofAccount: true, writes: true) { node in
      var settings = try await node.carriers().find(meant.carrier)
      guard let kind = CarrierAddress.Kind(rawValue: settings.kind), kind != .folder else {
        throw CommandFailure(.refused, "this carrier needs no credentials")
      }
      let address: CarrierAddress
      do throws(CarrierFailure) {
        address = try CarrierAddress(kind, settings.location)
      } catch {
        throw CommandFailure(.refused, Columns.sentence(error.message))
      }
      settings.credentials = try credentials.text(for: address, options.console)
      let trial = await CarrierTrial.run(settings, in: try await options.place(of: node))
      if let problem = trial.problem {
        throw CommandFailure(.unreachable, "nothing has changed: \(Columns.sentence(problem))")
      }
      try await node.keepCarrier(settings)
      return settings.location
    }
    try options.print(.versioned(["carrier": .string(location)]))
    options.console.talk("The new credentials of \(Columns.printable(location)) are used now.")
  }
}

struct CarrierRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Use a carrier no longer.",
    discussion: """
      The account's other devices stop as well, unless the carrier is this device's own. The objects \
      there stay: delete the directory kith1 yourself, once no device needs it. Asks first.
      """)

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let console = options.console
    let location = try await options.withNode(ofAccount: true) { node in
      let settings = try await node.carriers().find(meant.carrier)
      let whose = settings.isShared ? "on all devices of the account" : "on this device"
      try Confirmation.demand(
        "Use \(Columns.printable(settings.location)) no longer, \(whose)?", unless: yes, console)
      try await node.removeCarrier(settings)
      return settings.location
    }
    try options.print(.versioned(["carrier": .string(location)]))
    console.talk("Removed. The objects there stay until you delete them.")
  }
}

/// How a carrier's credentials are given: by a file, or on the terminal, never as arguments.
struct CarrierCredentialsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The user and the password, or the two keys, a line each; or a token. - is standard input. Default: asks.",
      valueName: "file"),
    completion: .file())
  var credentialsFile: String?

  @Flag(help: "The storage asks for no credentials.")
  var noCredentials = false

  func validate() throws {
    guard credentialsFile == nil || !noCredentials else {
      throw ValidationError("Give --credentials-file or --no-credentials.")
    }
  }

  /// Nil: none are needed.
  func text(for address: CarrierAddress, _ console: Console) throws -> String? {
    let kind = address.kind
    if kind == .folder {
      guard credentialsFile == nil else {
        throw CommandFailure(.usage, "a folder needs no credentials")
      }
      return nil
    }
    if noCredentials { return nil }
    if address.givesAwayDigest {
      console.warn(
        "without https the password goes as a digest: who listens on that network can guess at it "
          + "offline; use a long random one, or https")
    }
    var text = try credentialsFile.map { try InputText.text(of: $0) } ?? ask(for: kind)
    // The line feed shows that an empty last line is one: a password may be empty.
    if !text.isEmpty { text += "\n" }
    do throws(CarrierFailure) {
      _ = try CarrierCredentials(parsing: Array(text.utf8), for: kind)
    } catch {
      throw CommandFailure(.refused, error.message)
    }
    return text
  }

  private func ask(for kind: CarrierAddress.Kind) throws -> String {
    let (first, second) =
      kind == .s3 ? ("Access key: ", "Secret key: ") : ("User: ", "Password: ")
    guard let user = try answer(to: first, SecretPrompt.askOpenly),
      let password = try answer(to: second, SecretPrompt.ask)
    else {
      throw CommandFailure(
        .refused,
        "there is no terminal to ask for credentials on; give --credentials-file or "
          + "--no-credentials")
    }
    return user + "\n" + password
  }

  /// Nil if there is no terminal.
  private func answer(
    to prompt: String, _ ask: (_ prompt: String, _ limit: Int) -> SecretPrompt.Answer
  ) throws -> String? {
    switch ask(prompt, 1_024) {
    case .nobody: return nil
    case .givenUp: throw CommandFailure(.refused, "no credentials were given")
    case .typed(let bytes): return String(decoding: bytes, as: UTF8.self)
    }
  }
}
