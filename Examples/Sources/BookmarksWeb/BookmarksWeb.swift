#if Web
  import ArgumentParser
  import ExampleDevice
  import Hummingbird
  import Kith
  import Logging
  import ServiceLifecycle

  /// A bookmark manager as a small web program: Kith and Hummingbird in one service group. The data is
  /// that of `bookmarks-modern`, and both programs may use one directory.
  @main
  struct BookmarksWeb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "bookmarks-web", abstract: "Bookmarks, the same on all devices, as a web page.")
    @OptionGroup var device: DeviceOptions
    @Option(help: "The port of the page, for browsers of this computer only; 0: any.")
    var webPort: UInt16 = 8080

    func run() async throws {
      try await device.withAccounts { [webPort] accounts in
        let bookmarks = try BookmarkList(accounts)
        var logger = Logger(label: "web")
        logger.logLevel = .error

        // The page has no password, so the server listens only on the loopback interface. Each user of
        // this computer can read and change the bookmarks.
        let web = Application(
          router: BookmarkPage(bookmarks: bookmarks).router,
          configuration: .init(address: .hostname("127.0.0.1", port: Int(webPort))),
          onServerRunning: { say("open http://127.0.0.1:\($0.localAddress?.port ?? 0)/") },
          logger: logger)

        // The accounts first: services end in the reverse order, so the last request can still write.
        let group = ServiceGroup(
          services: [accounts, web], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        async let _ = accounts.sayWhenReady()
        try await group.run()
      }
    }
  }
#else
  @main
  enum BookmarksWeb {
    static func main() { print("the pages need a trait: swift run --traits Web bookmarks-web") }
  }
#endif
