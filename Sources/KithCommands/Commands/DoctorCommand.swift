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
      """)

  @OptionGroup var options: CommonOptions

  @Option(
    parsing: .unconditional,
    help: "The port on which a node is to listen, where none runs. Otherwise 4114.",
    transform: NumberOption.port)
  var port: UInt16?

  func run() async throws {
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
