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

      --accept-loss does something else: if a part of a store was damaged on this disk and no \
      device has returned it, that part counts as lost, and `kith export` and `kith status` call \
      the store whole. If a device returns it later, it is accepted all the same.
      """)

  @OptionGroup var options: CommonOptions

  @Option(parsing: .unconditional, help: "The port to check if no node runs. Default: 4114.")
  var port: UInt16?

  @Flag(help: "Count damaged data that is still missing as lost.")
  var acceptLoss = false

  @Flag(name: [.short, .long], help: "Accept the loss without asking.")
  var yes = false

  func validate() throws {
    guard acceptLoss || !yes else {
      throw ValidationError("Give --yes with --accept-loss only.")
    }
  }

  func run() async throws {
    if acceptLoss { try await takeForLost() } else { try await examine() }
  }

  private func takeForLost() async throws {
    let stores = try await options.withNode { node in
      let report = try await node.report()
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
          "Meet the \(Humane.count(others, "other device")) of the account first, if you can: they may "
            + "still have it.")
      }
      try Confirmation.demand("Take it for lost?", unless: yes, options.console)
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
    let directory: String
    do throws(KithError) {
      directory = try Accounts.deviceDirectory(in: options.directoryURL.path)
    } catch {
      // The list of accounts is damaged; the other checks still work.
      options.console.warn(error.description)
      directory = options.directoryURL.path
    }
    let patient = Patient(
      directory: directory, port: port ?? ListenPlan.defaultPort, nowMilliseconds: Moment.now,
      device: await Patient.device(of: directory, options.passphraseQuestion),
      isSignedOut: (try? options.isSignedOut) ?? false)
    let report = await DoctorReport.examine(patient)
    try options.print(report.document, text: report.text)
    guard report.isHealthy else {
      throw CommandFailure(
        .unhealthy, "\(Humane.count(report.problems, "problem")); see above")
    }
  }
}
