import ArgumentParser
import Dispatch
import FoundationEssentials
import Glibc
package import Kith
import KithTerminal
package import ServiceLifecycle
import Synchronization

struct WebCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "web",
    abstract: "Show the devices and stores on a page in the browser.",
    discussion: """
      Prints the page's address, and opens it in a graphical session. Only this computer reaches \
      it, and only one browser, because the address works once. The page shows this device and the \
      others, edits values, pairs, renames and revokes.

      Uses the running node. If none runs, this program runs one meanwhile, with --listen, --port, \
      --peer and --no-discovery; a node that starts later gets the directory. Ends with SIGTERM or \
      SIGINT.
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The page's port. Default: any free one.", valueName: "number"))
  var webPort: PortNumber?

  @Flag(
    inversion: .prefixedNo,
    help: "Open the page in the browser. Default: in a graphical session.")
  var open: Bool?

  @OptionGroup var node: NodeOptions

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    guard let make = WebPage.maker.withLock({ $0 }) else { throw PageProgram.replaceThisOne() }
    DescriptorLimit.raise()
    // The reader of the log may close it.
    signal(SIGPIPE, SIG_IGN)
    let store = try store.identifier
    var configuration = options.accounts(passphrase: options.passphraseQuestion)
    // A device that the page makes gets the configured passphrase: no person is asked for one.
    if try options.isSignedOut { configuration.passphrase = options.passphraseSource?.read }
    try node.apply(to: &configuration)
    configuration.logger = ServiceLog.logger(options.quiet ? .error : .warning)
    let address = PageAddress(options: options, opens: open)
    defer { address.remove() }
    try await Accounts(configuration).use { accounts in
      try await accounts.openDefaultStore(store, options.console)
      let page = WebPage(
        accounts: accounts, store: store, port: webPort?.number ?? 0, onReady: address.show,
        onUse: address.remove)
      try await accounts.runUntilSignal(beside: make(page))
    }
  }
}

/// The accounts and settings of the page of `kith web`.
package struct WebPage: Sendable {
  package typealias Maker = @Sendable (WebPage) -> any Service
  /// Makes the server of the page; nil in the program without it. Set once, before the command runs:
  /// a task-local value around an asynchronous `main` crashes in optimized builds of Swift 6.3.
  static let maker = Mutex<Maker?>(nil)

  package let accounts: Accounts
  /// The default store.
  package let store: StoreIdentifier
  /// 0: any.
  package let port: UInt16
  /// Called with the page's address, which holds a secret, once the page can be opened.
  package let onReady: @Sendable (String) -> Void
  /// Called once the address was used, and is worth nothing any more.
  package let onUse: @Sendable () -> Void
}

/// The program `kith-web`: this tool with the page linked in.
enum PageProgram {
  /// Returns only if the program cannot be started.
  static func replaceThisOne() -> CommandFailure {
    let name = "kith-web"
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = URL(filePath: own).deletingLastPathComponent().appending(path: name).path
    let arguments = [name] + CommandLine.arguments.dropFirst()
    let words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    // Without /proc it is not known where this program is.
    if !own.isEmpty { execv(beside, words) }
    execvp(name, words)
    return CommandFailure(
      .failure,
      "the page is in the program \(name), which is neither beside this one nor in PATH; from the "
        + "sources: swift build --traits Web --product \(name)")
  }
}

/// Shows the page's address to the person, or to the browser.
struct PageAddress: Sendable {
  private let options: CommonOptions
  private let opens: Bool
  /// A page that leads to the address. The browser's arguments would show the secret to other users.
  private let file: String

  init(options: CommonOptions, opens: Bool?) {
    let environment = ProcessInfo.processInfo.environment
    let isGraphical = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    self.options = options
    self.opens = opens ?? (isGraphical && Terminal.hasTalk)
    let runtime = environment["XDG_RUNTIME_DIR", default: ""]
    let directory = runtime.isEmpty ? FileManager.default.temporaryDirectory.path : runtime
    file = "\(directory)/kith-web-\(UUID().uuidString).html"
  }

  @Sendable func show(_ address: String) {
    let console = options.console
    if options.json {
      console.dataOrExit(Document.versioned(["address": .string(address)]).text(indented: false))
    } else {
      console.dataOrExit(address)
    }
    guard opens else {
      return console.talk("Open this address in a browser on this computer. It works once.")
    }
    do throws(CommandFailure) {
      try write("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=\(address)\">\n")
      let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
      defer { close(null) }
      let browser = try HostProgram(["xdg-open", file], output: null)
      DispatchQueue.global().async { _ = browser.wait() }
      // A browser in a container may not be able to read the file, and only it says so.
      console.talk("A browser opens this address; if it does not, open it by hand. It works once.")
    } catch {
      console.warn("no browser can be started; open the address by hand")
    }
  }

  private func write(_ page: String) throws(CommandFailure) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    defer { close(descriptor) }
    let bytes = Array(page.utf8)
    guard descriptor >= 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
      throw CommandFailure(.failure, "\(file): \(String(cString: strerror(errno)))")
    }
  }

  @Sendable func remove() { unlink(file) }
}
