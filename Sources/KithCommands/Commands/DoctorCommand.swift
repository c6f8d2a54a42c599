import ArgumentParser
import Kith
import KithTerminal

struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Check this device for problems, and say what to do.",
    discussion: """
      Each line says what was tried and seen, the next one what to do. It asks the running node, \
      or opens the directory; it repairs nothing and leaves nothing. Status 7 for a problem.

      --repair does something else: if the database is so damaged that it is refused, it makes a new \
      one of what can be read, and keeps the damaged file beside it. Other devices give back what they \
      have. By itself Kith does so only if no write is lost that no other device has.

      --accept-loss does something else again: if a part of a store was damaged on this disk and no \
      device has returned it, that part counts as lost, and `kith export` and `kith status` call \
      the store whole. If a device returns it later, it is accepted all the same.
      """)

  @Option(parsing: .unconditional, help: "The port to check if no node runs. Default: 4114.")
  var port: PortNumber?

  @Flag(help: "Make a new database of what can be read of a damaged one.")
  var repair = false

  @Flag(help: "Count damaged data that is still missing as lost.")
  var acceptLoss = false

  @Flag(name: [.short, .long], help: "Repair, or accept the loss, without asking.")
  var yes = false

  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard acceptLoss || repair || !yes else {
      throw ValidationError("Give --yes with --repair or --accept-loss only.")
    }
    guard !acceptLoss || !repair else {
      throw ValidationError("Give --repair first; then --accept-loss if something stays missing.")
    }
  }

  func run() async throws {
    if repair {
      try rebuild()
    } else if acceptLoss {
      try await acceptLosses()
    } else {
      try await examine()
    }
  }

  private func rebuild() throws {
    let directory = try Accounts.deviceDirectory(in: options.directoryURL.path)
    var failure: CommandFailure?
    let console = options.console
    let rebuilt = try Node.repair(
      directory: directory, passphrase: options.passphraseQuestion
    ) { plan in
      guard plan.lacksOwn else { return true }
      console.talk(
        "The part is damaged that has the writes which no other device has: "
          + "\(Format.count(plan.drafts, "of them")) can be read, and some may be lost. A newer backup may "
          + "have them. The damaged database is kept.")
      do throws(CommandFailure) {
        try Confirmation.demand("Make a new database?", unless: yes, console)
        return true
      } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
    try options.print(
      .versioned([
        "kept": .string(rebuilt?.damaged), "lacksShared": rebuilt.map { .bool($0.lacksShared) },
        "lacksOwn": rebuilt.map { .bool($0.lacksOwn) }, "repaired": .bool(rebuilt != nil),
      ]))
    guard let rebuilt else { return console.talk("The database is sound: nothing was repaired.") }
    console.talk(
      "Made a new database; the damaged one is \(rebuilt.damaged). "
        + (rebuilt.lacksShared
          ? "Other devices give back what is missing: start the node (kith run), and see: kith status"
          : "No published write is missing."))
  }

  private func acceptLosses() async throws {
    let stores = try await options.withNode { node in
      let report = try await node.status()
      let stores = report.stores.filter { $0.missing != nil }
      guard !stores.isEmpty else { return stores }
      for store in stores {
        options.console.talk(
          "\(Columns.printable(store.identifier.rawValue)): a part is missing (\(store.missingText)); of which "
            + "keys cannot be told. A write that no other device has is gone.")
      }
      let others = report.others.count
      if others > 0 {
        options.console.talk(
          "Meet the \(Format.count(others, "other device")) of the account first, if you can: they may "
            + "still have it.")
      }
      try Confirmation.demand("Accept the loss?", unless: yes, options.console)
      for store in stores { try await node.acceptLoss(in: store.identifier.rawValue) }
      return stores
    }
    let accepted = stores.map { store in
      Document.object([
        "missing": store.missing.map(Document.of), "store": .string(store.identifier.rawValue),
      ])
    }
    try options.print(.versioned(["accepted": .list(accepted)]))
    options.console.talk(
      stores.isEmpty ? "Nothing is missing." : "The stores count as whole again.")
  }

  private func examine() async throws {
    let path = options.directoryURL.path
    var accountsError: KithError?
    let directory: String
    do throws(KithError) {
      directory = try Accounts.deviceDirectory(in: path)
    } catch {
      // The other checks still work.
      (directory, accountsError) = (path, error)
    }
    var target = DiagnosisTarget(
      directory: directory, port: port?.number ?? ListenPlan.defaultPort,
      nowMilliseconds: Moment.now,
      device: await DiagnosisTarget.device(
        of: directory, options.passphraseQuestion, isGiven: options.passphraseSource != nil),
      isSignedOut: (try? options.isSignedOut) ?? false, accountsError: accountsError)
    target.pendingAdoption = Accounts.pendingAdoption(in: path)
    target.incompleteAccounts = Self.incompleteAccounts(in: path, but: target.directory)
    let report = await DoctorReport.examine(target)
    try options.print(report.document, text: report.text)
    guard report.isHealthy else {
      throw CommandFailure(
        .unhealthy, "\(Format.count(report.problems, "problem")); see above")
    }
  }

  /// The accounts whose devices lack a file, except the open one, which is checked itself.
  private static func incompleteAccounts(
    in path: String, but open: String
  ) -> [(account: String, file: String)] {
    let noted = (try? Accounts.noted(in: path)) ?? []
    return noted.filter { $0.directory != open }.compactMap { account in
      Accounts.missingFile(of: account).map { (account: account.account.hex, file: $0) }
    }
  }
}
