import ArgumentParser
import ExampleDevice
import Kith
import Logging
import Metrics
import ServiceLifecycle

/// A server program with Kith inside: a service group runs it beside the program's own
/// service, SIGTERM ends both in order, logs go to standard error and metrics to standard output.
@main
struct ServiceExample: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "service", abstract: "Kith in a service group, with logs and metrics.")
  @OptionGroup var device: DeviceOptions

  func run() async throws {
    LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
    let metrics = PrintingMetrics()
    MetricsSystem.bootstrap(metrics)

    var configuration = device.configuration
    configuration.logger = Logger(label: "kith")
    let accounts = try Accounts(configuration)
    let store = try accounts.store("com.example.Service")
    let greeter = Greeter(store: store, logger: Logger(label: "greeter"))

    // The accounts first: services end in the reverse order, so the greeter's last write still leaves.
    let group = ServiceGroup(
      services: [accounts, greeter], gracefulShutdownSignals: [.sigterm, .sigint],
      logger: Logger(label: "group"))
    async let _ = accounts.sayWhenReady()
    try await group.run()
    try accounts.close()
    metrics.printAll()
  }
}
