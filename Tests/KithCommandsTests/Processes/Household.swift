import Foundation
import Kith
import KithTestSupport

/// Devices of one account, each with a directory and, while it runs, a real `kith run`.
final class Household {
  /// One device.
  final class Member {
    let name: String
    let directory: URL
    /// The port, chosen by the system at the first start and kept from then on.
    fileprivate(set) var port = 0
    fileprivate(set) var process: KithProcess?
    /// The messages of `kith join`.
    fileprivate(set) var said = ""
    /// The address on which it listens; other than loopback's only in namespaces of its own.
    var host = "127.0.0.1"
    /// Whether it looks for others on its links. If not, it meets only the peers that it is given.
    var discovers = false
    /// The command and arguments that start its node; see ``KithProcess``.
    var launcher: [String] = []
    var environment: [String: String] = [:]

    init(name: String, directory: URL) {
      self.name = name
      self.directory = directory
    }

    /// Talks to the running node.
    var client: LocalClient { LocalClient(directory: directory.path) }
    /// The address and port on which it listens.
    var address: String { "\(host):\(port)" }
  }

  /// The directory that holds everything; short, as a socket's path must be.
  let root: URL
  private(set) var members: [Member] = []
  /// The mounts under ``root``.
  var mounts: [Mount] = []

  /// Begins the names of all that tests leave on the host while they run, so that `Tests/run` can see
  /// that nothing is left.
  static let prefix: String = {
    let run = ProcessInfo.processInfo.environment["KITH_RUN"]
    return "kith-\(run.map { "\($0)-" } ?? "")"
  }()

  init() throws {
    let name = "\(Self.prefix)\(UInt32.random(in: 0 ... .max))"
    root = URL(filePath: "/tmp/\(name)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }

  deinit {
    for member in members { member.process?.end() }
    for mount in mounts { mount.unmount() }
    try? FileManager.default.removeItem(at: root)
  }

  /// Runs a command on a member's directory.
  func run(
    _ member: Member, _ arguments: String..., input: Data? = nil
  ) async throws -> KithProcess.Result {
    try await KithProcess.run(
      arguments + ["--directory", member.directory.path], in: root, input: input)
  }

  /// Begins the account with its first member, in a directory of its own or the one given.
  func create(_ name: String, in directory: URL? = nil) async throws -> Member {
    let member = Member(name: name, directory: directory ?? root.appending(path: name))
    let result = try await run(member, "account", "create", "--name", name)
    guard result.status == 0 else { throw NotInTime(result.talk) }
    members.append(member)
    return member
  }

  /// Takes in another member, invited by the first or the one given.
  func join(
    _ name: String, in directory: URL? = nil, invitedBy inviter: Member? = nil
  ) async throws -> Member {
    let member = Member(name: name, directory: directory ?? root.appending(path: name))
    let invitation = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory",
        (inviter ?? members[0]).directory.path,
      ], in: root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }
    let token = invitation.printedSoFar.trimmingCharacters(in: .whitespacesAndNewlines)
    let joined = try await run(
      member, "join", "-", "--name", name, input: Data((token + "\n").utf8))
    guard joined.status == 0 else { throw NotInTime(joined.talk) }
    let invited = try await invitation.wait()
    guard invited.status == 0 else { throw NotInTime("\(invited)") }
    member.said = joined.talk
    members.append(member)
    return member
  }

  /// Has a member invite by a code. Returns the process, the code and the address on which it
  /// listens.
  func invite(
    _ member: Member, _ more: String...
  ) async throws -> (process: KithProcess, code: String, address: String) {
    let process = try KithProcess(
      ["invite", "--yes", "--directory", member.directory.path] + more, in: root)
    try await eventually("a code") {
      process.printedSoFar.hasSuffix("\n") && process.saidSoFar.contains("--peer")
    }
    let code = process.printedSoFar.trimmingCharacters(in: .whitespacesAndNewlines)
    guard let address = process.saidSoFar.firstMatch(of: /--peer (\S+)/)?.1 else {
      throw NotInTime("no address in \(process.saidSoFar)")
    }
    return (process, code, String(address))
  }

  /// Takes in another member by a code. The member is started by the launcher, and finds the
  /// inviter there.
  func join(_ name: String, code: String, launcher: [String]) async throws -> Member {
    let member = Member(name: name, directory: root.appending(path: name))
    member.launcher = launcher
    let joined = try await KithProcess(
      ["join", code, "--yes", "--name", name, "--directory", member.directory.path], in: root,
      launcher: launcher
    ).wait()
    guard joined.status == 0 else { throw NotInTime(joined.talk) }
    members.append(member)
    return member
  }

  /// Starts a member's node and waits until it answers. Peers are those named, or all others.
  func start(_ member: Member, peers: [String]? = nil) async throws {
    let others = members.filter { $0 !== member && $0.port != 0 }.map(\.address)
    let dialled = (peers ?? others).flatMap { ["--peer", $0] }
    let process = try KithProcess(
      [
        "run", "--directory", member.directory.path, "--listen", member.host, "--port",
        "\(member.port)",
      ] + (member.discovers ? [] : ["--no-discovery"]) + dialled, in: root,
      environment: member.environment, launcher: member.launcher)
    member.process = process
    try await eventually("\(member.name) to be ready") {
      guard process.isRunning else {
        let end = try await process.wait()
        throw NotInTime("\(member.name) ended with status \(end.status): \(end.talk)")
      }
      return process.saidSoFar.contains("ready")
    }
    // Lines of the log have other devices' addresses.
    let said = process.saidSoFar.split(separator: "\n")
    if let ready = said.first(where: { $0.contains("listening on") }),
      let range = ready.firstRange(of: /[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+:[0-9]+/)
    {
      member.port = Int(ready[range].split(separator: ":")[1]) ?? 0
    }
    try await eventually("\(member.name) to answer") {
      (try? await member.client.status()) != nil
    }
  }

  /// A member that is there without having been taken in by ``join(_:in:invitedBy:)``.
  func add(_ name: String) -> Member {
    let member = Member(name: name, directory: root.appending(path: name))
    members.append(member)
    return member
  }

  /// Ends a member's node with a signal, and waits until it is gone.
  @discardableResult
  func stop(_ member: Member, _ signal: Int32 = SIGTERM) async throws -> KithProcess.Result? {
    defer { member.process = nil }
    member.process?.send(signal)
    return try await member.process?.wait()
  }

  /// The values that a member shows, as `kith export --json` prints them.
  func export(_ member: Member) async throws -> String {
    try await run(member, "export", "--json").output
  }
}

extension Household {
  /// The store that tests write.
  static let store = "default"

  /// Waits until all nodes have everything: no draft waits to be published, and all have the same
  /// state and print the same bytes. Returns how long that took. An export holds no hidden values:
  /// nodes may print the same before they have exchanged those.
  @discardableResult
  func settle(seconds: Double = 120) async throws -> Duration {
    let began = ContinuousClock.now
    try await eventually("all nodes to have the same", seconds: seconds, every: 50) {
      var digests: Set<[String]> = []
      for member in members {
        let stores = try await member.client.status().stores
        guard stores.allSatisfy({ $0.drafts == 0 }) else { return false }
        digests.insert(stores.map(\.digest))
      }
      guard digests.count == 1 else { return false }
      var exports: Set<String> = []
      for member in members { exports.insert(try await export(member)) }
      return exports.count == 1
    }
    return ContinuousClock.now - began
  }

  /// The values that all nodes show, the hidden ones, and the refusals that each node reported.
  func outcome() async throws -> History.Outcome {
    let client = members[0].client
    var hidden: [KeyValueStore.Key: PropertyListValue] = [:]
    for item in try await client.hiddenEntries(in: Self.store) {
      hidden[item.key] = item.value
    }
    var refused: [Set<String>] = []
    for member in members {
      let refusals = try await member.client.refusals(in: Self.store, takingThrough: nil)
      refused.append(
        Set(refusals.flatMap(\.writes).map { History.Outcome.name($0.key.text, $0.value) }))
    }
    return History.Outcome(
      shown: try await client.values(in: Self.store), hidden: hidden, refused: refused)
  }

  /// Waits until each member has met another one.
  func awaitMeeting() async throws {
    for member in members {
      try await eventually("\(member.name)'s first sync") {
        try await !member.client.status().peers.isEmpty
      }
    }
  }
}

extension Household {
  /// Opens stores s0, s1 and so on, while nobody is signed in.
  func openStores(of member: Member, _ count: Int) throws {
    var configuration = Accounts.Configuration(directory: member.directory.path)
    configuration.logger.logLevel = .critical
    let accounts = try Accounts(configuration)
    for number in 0..<count { _ = try accounts.store("s\(number)") }
    try accounts.close()
  }
}
