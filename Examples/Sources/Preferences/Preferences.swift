import ArgumentParser
import ExampleDevice
import Foundation
import Kith
import KithUserDefaults
import ServiceLifecycle

/// A program whose settings live in `UserDefaults`, as they always have, and are now the same on
/// all devices.
@main
struct Preferences: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Settings in UserDefaults, the same on all devices.",
    subcommands: [Show.self, Write.self, Run.self])

  /// The shared settings. Everything else, such as the window's place, stays on its device.
  static let shared = ["theme", "fontSize"]
}

/// Which defaults, of which device.
struct Settings: ParsableArguments {
  @OptionGroup var device: DeviceOptions
  @Option(help: "The suite of the defaults; without it those of the program.") var suite: String?

  func mirror(
    _ accounts: Accounts, onSync: (@Sendable (UserDefaultsMirror.Report) -> Void)? = nil
  ) throws -> UserDefaultsMirror {
    UserDefaultsMirror(
      try accounts.store("com.example.Preferences"), keys: Preferences.shared, suite: suite,
      interval: .seconds(1), onSync: onSync)
  }

  /// Reading needs no mirror and no node: the settings are the program's own.
  static func show(_ suite: String?) {
    guard let defaults = UserDefaults(suiteName: suite) else { return }
    say("theme \(defaults.string(forKey: "theme") ?? "system")")
    let fontSize = defaults.integer(forKey: "fontSize")
    say("fontSize \(fontSize == 0 ? 12 : fontSize)")
  }
}

struct Show: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Shows the settings.")
  @OptionGroup var settings: Settings

  func run() { Settings.show(settings.suite) }
}

struct Write: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Changes settings.")
  @OptionGroup var settings: Settings
  @Option var theme: String?
  @Option var fontSize: Int?

  func run() async throws {
    try await settings.device.withAccounts { accounts in
      let mirror = try settings.mirror(accounts)
      mirror.sync()
      if let theme { try mirror.set(.string(theme), forKey: "theme") }
      if let fontSize { try mirror.set(.integer(Int64(fontSize)), forKey: "fontSize") }
    }
    Settings.show(settings.suite)
  }
}

struct Run: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Stays connected to the other devices, and shows the settings when they change.")
  @OptionGroup var settings: Settings

  func run() async throws {
    let suite = settings.suite
    try await settings.device.withAccounts { accounts in
      let mirror = try settings.mirror(accounts) { report in
        // UserDefaults tells nobody on Linux; the mirror does.
        for key in report.taken { say("\(key) came from another device") }
        for (key, error) in report.problems { say("\(key): \(error.message)") }
        Settings.show(suite)
      }
      async let _ = accounts.sayWhenReady()
      // Services end in reverse order: the mirror writes its last before the accounts stop.
      let group = ServiceGroup(
        services: [accounts, mirror], gracefulShutdownSignals: [.sigterm, .sigint],
        logger: accounts.configuration.logger)
      try await group.run()
    }
    say("stopped")
  }
}
