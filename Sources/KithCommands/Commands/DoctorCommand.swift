import ArgumentParser
import Kith
import KithTerminal

/// `kith doctor`.
struct DoctorCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Look for what keeps this device from working, and say what to do.",
    discussion: """
      Each line says what was tried and what was seen, and the one below it what to do. It asks the \
      node that runs, or opens the directory as every command does; it mends nothing, and leaves \
      nothing behind. Status 7 if something is to be mended.

      With --accept-loss it does one other thing instead: where a part of a store was damaged on \
      this disk and no device has given it back, it takes that part for lost, so that `kith export` \
      and `kith status` find the store whole. What a device gives back later is taken all the same.
      """)

  @OptionGroup var options: CommonOptions

  @Option(
    parsing: .unconditional,
    help: "The port on which a node is to listen, where none runs. Otherwise 4114.",
    transform: NumberOption.port)
  var port: UInt16?

  @Flag(help: "Take for lost what was damaged here and is missing still.")
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

  /// Asks, and takes for lost what is missing of every store.
  private func takeForLost() async throws {
    let stores = try await options.withNode { node in
      let report = try await node.statusReport()
      let stores = report.stores.filter(\.isLacking)
      guard !stores.isEmpty else { return stores }
      for store in stores {
        options.console.talk(
          "\(Columns.printable(store.identifier)): a part is missing (\(store.missingText)); of which "
            + "keys cannot be told. A write that no other device has is gone.")
      }
      let others = report.devices.count { !$0.isSelf }
      if others > 0 {
        options.console.talk(
          "Meet the \(Humane.count(others, "other device")) of the account first, if you can: they may "
            + "still have it.")
      }
      guard yes || Terminal.hasInput else {
        throw CommandFailure(
          .refused, "nobody can answer here, as standard input is no terminal; pass --yes")
      }
      guard yes || Confirmation.isGiven("Take it for lost?", options.console) else {
        throw CommandFailure(.refused, "nothing was done")
      }
      for store in stores { try await node.acceptLoss(in: store.identifier) }
      return stores
    }
    try options.print(AcceptedLoss(stores: stores).document) { _ in "" }
    options.console.talk(
      stores.isEmpty ? "Nothing is missing." : "The stores count as whole again.")
  }

  private func examine() async throws {
    let directory: String
    do throws(KithError) {
      directory = try Accounts.deviceDirectory(in: options.directoryURL.path)
    } catch {
      // The list of accounts is damaged; the other checks are still possible.
      options.console.warn(error.description)
      directory = options.directoryURL.path
    }
    var patient = await Patient(
      directory: directory, port: port ?? ListenPlan.defaultPort,
      passphrase: options.passphraseQuestion, nowMilliseconds: Moment.now)
    patient.isSignedOut = (try? options.isSignedOut) ?? false
    let report = await DoctorReport.examine(patient)
    try options.print(report.document, text: report.text)
    guard report.isHealthy else {
      throw CommandFailure(
        .unhealthy, "\(Humane.count(report.problems, "thing")) to mend; see above")
    }
  }
}

/// What was taken for lost.
struct AcceptedLoss {
  var stores: [StoreFacts]

  /// The same, for programs.
  var document: Document {
    .versioned([
      "accepted": .list(
        stores.map {
          .object([
            "missingChangeSets": $0.missingChangeSets.map(Document.int),
            "missingEntries": $0.missingEntries.map(Document.int),
            "store": .string($0.identifier),
          ])
        })
    ])
  }
}
