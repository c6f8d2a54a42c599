import ArgumentParser
import Glibc
import Kith
import KithStorage
import KithTerminal

struct ServiceCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "service",
    abstract: "Run the node as a service of systemd.",
    subcommands: [
      ServiceInstallCommand.self, ServiceRemoveCommand.self, ServiceStatusCommand.self,
    ])
}

struct ServiceOptions: ParsableArguments {
  @Flag(help: "The host's service, of the user kith. Default: as root.")
  var system = false

  @Flag(help: "This person's service. Default: except as root.")
  var user = false

  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard !system || !user else { throw ValidationError("Give one of --system and --user.") }
  }

  var service: NodeService {
    get throws { try options.service(isOfHost: system || (!user && geteuid() == 0)) }
  }

  /// The service, for the subcommand of this name, which changes it.
  func service(for command: String) throws -> NodeService {
    let service = try service
    guard !service.unit.isOfHost || geteuid() == 0 else {
      let flag = options.directory.map { " --directory \(ShellText.quoted($0))" } ?? ""
      throw CommandFailure(
        .refused,
        "the host's service needs root, and nothing was done: "
          + "sudo kith service \(command) --system\(flag)")
    }
    return service
  }

  func show(_ service: NodeService) throws {
    let state = service.state
    let document = Document.versioned([
      "isChanged": .bool(service.isChanged), "isEnabled": state.map { .bool($0.isEnabled) },
      "isInstalled": .bool(service.isInstalled), "isPackaged": .bool(service.isPackaged),
      "isRunning": state.map { .bool($0.isRunning) }, "unit": .string(service.path),
    ])
    try options.print(document) { style in
      func word(_ isTrue: Bool?) -> Table.Cell { isTrue.map { $0 ? "yes" : "no" } ?? "unknown" }
      var table = Table()
      table.add(fact: "unit", .init(Columns.printable(service.path)))
      table.add(
        fact: "installed", service.isPackaged ? "by a package" : word(service.isInstalled))
      table.add(fact: "changed", word(service.isChanged))
      table.add(fact: "enabled", word(state?.isEnabled))
      table.add(fact: "running", word(state?.isRunning))
      return table.text(style)
    }
  }
}

struct ServiceInstallCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "install",
    abstract: "Write the node's unit, enable and start it.",
    discussion: """
      If a package brought the same unit, that is used. The unit names this kith, and the directory if it is not the usual one. The host's runs as \
      the user kith, with /var/lib/kith. A unit that somebody changed is not replaced without \
      --force; `systemctl edit` makes changes that stay.
      """)

  @OptionGroup var options: ServiceOptions

  @Flag(help: "Replace a unit that somebody changed.")
  var force = false

  func run() async throws {
    let service = try options.service(for: "install")
    let isOfHost = service.unit.isOfHost
    let program = service.unit.program
    // See `ProtectHome=` in the unit.
    let isHidden = ["/home/", "/root/", "/run/user/"].contains { program.hasPrefix($0) }
    guard !isOfHost || !isHidden else {
      throw CommandFailure(
        .refused,
        "\(program): the host's service cannot see home directories; copy it to /usr/local/bin")
    }
    let directory = isOfHost ? service.unit.directory : options.options.directoryURL.path
    guard try !Accounts.isSignedOut(in: directory) else {
      throw CommandFailure(
        .directory,
        "\(directory): nobody is signed in here; "
          + (isOfHost
            ? "as root make the user kith and the directory, and join as that user:\n"
              + service.unit.preparation
            : CommonOptions.signingIn))
    }
    let device = try Accounts.deviceDirectory(in: directory)
    // Root may not read another user's secrets.
    let isLocked = (try? Node.isUnderPassphrase(directory: device)) == true
    try service.install(force: force, starts: !isLocked)
    try options.show(service)
    let console = options.options.console
    if isLocked {
      console.talk(
        "The secrets are under a passphrase: give it to the service as the first lines of the unit "
          + "say, then start it: systemctl \(isOfHost ? "" : "--user ")start \(service.unit.name)")
    }
    if !isOfHost, !service.lingers {
      console.talk("To run it also while you are not logged in: loginctl enable-linger")
    }
  }
}

struct ServiceRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Stop and disable the node's service, and remove its unit.",
    discussion: "The device and its data stay, and so does a package's unit.")

  @OptionGroup var options: ServiceOptions

  @Flag(help: "Remove a unit that somebody changed.")
  var force = false

  func run() async throws {
    let service = try options.service(for: "remove")
    try service.remove(force: force)
    try options.show(service)
  }
}

struct ServiceStatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the node's unit, and whether it is enabled and runs.")

  @OptionGroup var options: ServiceOptions

  func run() async throws { try options.show(options.service) }
}
