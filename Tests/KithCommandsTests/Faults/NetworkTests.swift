import Foundation
import Glibc
import Kith
import KithTerminal
import KithTesting
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  /// Hosts whose network lacks something.
  @Suite struct NetworkTests {
    /// A part of IPv6 that a host may lack.
    enum Lack: String, CaseIterable {
      /// It is switched off, as by sysctl.
      case switchedOff
      /// The network has none; only loopback has an address.
      case onlyLoopback
      /// The network has it, and loopback has not.
      case noLoopback
      /// The system makes no such sockets, as with `ipv6.disable=1` or `RestrictAddressFamilies=`.
      case noSockets
    }

    /// Runs a command for which the kernel makes no IPv6 sockets: a filter of system calls
    /// (seccomp(2)) answers that it knows no such addresses.
    private static let withoutSockets = """
      import ctypes, os, platform, struct, sys
      number = {'x86_64': 41, 'aarch64': 198}[platform.machine()]
      code = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 10),
              (0x06, 0, 0, 0x50000 | 97), (0x06, 0, 0, 0x7fff0000)]
      program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
      class Filter(ctypes.Structure):
          _fields_ = [('length', ctypes.c_ushort), ('lines', ctypes.c_void_p)]
      filter = Filter(len(code), ctypes.addressof(program))
      libc = ctypes.CDLL(None, use_errno=True)
      if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filter), 0, 0):
          sys.exit('no filter')
      os.execvp(sys.argv[1], sys.argv[1:])
      """

    /// A namespace with an IPv4 network to another one.
    private static func host(_ household: Household) throws -> NamespaceSet {
      let name = household.root.lastPathComponent
      let namespaces = try NamespaceSet(["\(name)-a", "\(name)-b"])
      let (here, there) = (namespaces.names[0], namespaces.names[1])
      try Shell.run(
        "ip", "-n", here, "link", "add", "net", "type", "veth", "peer", "name", "net", "netns",
        there)
      try Shell.run("ip", "-n", here, "addr", "add", "10.79.0.1/24", "dev", "net")
      try Shell.run("ip", "-n", here, "link", "set", "net", "up")
      try Shell.run("ip", "-n", there, "link", "set", "net", "up")
      return namespaces
    }

    private static func launcher(_ lack: Lack, _ namespaces: NamespaceSet) throws -> [String] {
      let launcher = namespaces.launcher(0)
      func set(_ name: String) throws {
        try Shell.run(launcher + ["sysctl", "-qw", "net.ipv6.conf.\(name).disable_ipv6=1"])
      }
      switch lack {
      case .switchedOff: try set("all")
      case .onlyLoopback: try set("net")
      case .noLoopback:
        try Shell.run("ip", "-n", namespaces.names[0], "addr", "del", "::1/128", "dev", "lo")
      case .noSockets: return launcher + ["/usr/bin/python3", "-c", withoutSockets]
      }
      return launcher
    }

    @Test(
      .enabled(if: NamespaceSet.isPossible, "network namespaces cannot be made here"),
      arguments: Lack.allCases)
    func `without IPv6 a node serves, invites, is joined and examined`(lack: Lack) async throws {
      let household = try Household()
      let namespaces = try Self.host(household)
      defer { namespaces.remove() }
      let launcher = try Self.launcher(lack, namespaces)
      let alpha = try await household.create("alpha")
      func start(_ arguments: String...) throws -> KithProcess {
        try KithProcess(
          arguments + ["--directory", alpha.directory.path], in: household.root,
          launcher: launcher)
      }
      // Without a node the inviting command listens itself.
      for withNode in [false, true] {
        let node = withNode ? try start("run", "--port", "0", "--no-discovery") : nil
        if let node {
          try await eventually("the node to serve") {
            guard node.isRunning else {
              throw NotInTime("it ended: \(try await node.wait().talk)")
            }
            return node.saidSoFar.contains("ready")
          }
        }
        let invitation = try start("invite", "--yes")
        try await eventually("a code") {
          guard invitation.isRunning else {
            throw NotInTime("it ended: \(try await invitation.wait().talk)")
          }
          return invitation.saidSoFar.contains("--peer")
        }
        let name = withNode ? "beta" : "gamma"
        let port = try #require(
          invitation.saidSoFar.firstMatch(of: /--peer \S+:([0-9]+)/)?.1)
        let joined = try await KithProcess(
          [
            "join", invitation.printedSoFar.trimmingCharacters(in: .whitespacesAndNewlines),
            "--yes", "--name", name, "--peer", "127.0.0.1:\(port)", "--directory",
            household.root.appending(path: name).path,
          ], in: household.root, launcher: launcher
        ).wait()
        #expect(joined.status == 0, "\(joined.talk)")
        #expect(try await invitation.wait().status == 0)
        node?.send(SIGTERM)
        #expect(try await node?.wait().status ?? 0 == 0)
      }
      // The doctor tries what a node does, and says the same.
      let doctor = try await start("doctor", "--json", "--port", "4114").wait()
      let answer = try JSONDecoder().decode(Answer.self, from: Data(doctor.output.utf8))
      #expect(answer.verdicts(of: "port") == ["ok"], "\(doctor)")
      #expect(answer.verdicts(of: "network") == ["ok"], "\(doctor)")
    }

    private struct Answer: Decodable {
      struct Finding: Decodable {
        var check: String
        var verdict: String
        var seen: String
      }
      var findings: [Finding]

      func verdicts(of check: String) -> [String] {
        findings.filter { $0.check == check }.map(\.verdict)
      }
    }

    @Test(.enabled(if: NamespaceSet.isPossible, "network namespaces cannot be made here"))
    func `a host without a network is told`() async throws {
      let household = try Household()
      let namespaces = try Self.host(household)
      defer { namespaces.remove() }
      let alpha = try await household.create("alpha")
      func ask() async throws -> (answer: Answer, status: Int32) {
        let result = try await KithProcess(
          ["doctor", "--json", "--port", "0", "--directory", alpha.directory.path],
          in: household.root, launcher: namespaces.launcher(0)
        ).wait()
        return (
          try JSONDecoder().decode(Answer.self, from: Data(result.output.utf8)), result.status
        )
      }
      let good = try await ask()
      #expect(good.answer.verdicts(of: "network") == ["ok"])
      // The other end's cable is out; the address stays.
      try Shell.run("ip", "-n", namespaces.names[1], "link", "set", "net", "down")
      try await eventually("the pulled cable to be told") {
        try await ask().answer.verdicts(of: "network") == ["problem"]
      }
      try Shell.run("ip", "-n", namespaces.names[0], "link", "del", "net")
      let none = try await ask()
      let network = none.answer.findings.filter { $0.check == "network" }
      #expect(network.map(\.seen) == ["no interface has an address"])
      #expect(none.status == CommandStatus.unhealthy.rawValue)
      #expect(none.answer.verdicts(of: "multicast").contains("note"))
    }

    /// A host whose cable is pulled says nothing any more. A person who looks is told soon: by itself the kernel
    /// notices it 45 s after something was sent, and something is sent every 30 s.
    @Test(.enabled(if: Bridge.isPossible, "network namespaces with a bridge cannot be made here"))
    func `a peer that vanished is not connected for long`() async throws {
      let household = try Household()
      let bridge = try Bridge(household.root.lastPathComponent, count: 2)
      defer { bridge.remove() }
      for (index, name) in ["alpha", "beta"].enumerated() {
        let member = try await (index == 0 ? household.create(name) : household.join(name))
        (member.launcher, member.host) = (bridge.launcher(index), "0.0.0.0")
      }
      let alpha = household.members[0]
      try await household.start(alpha, peers: [])
      try await household.start(household.members[1], peers: ["10.78.0.1:\(alpha.port)"])
      func isConnected() async throws -> Bool {
        let status = try await household.run(alpha, "status")
        return status.output.contains("1 of 1 connected")
      }
      try await eventually("both to be connected") { try await isConnected() }
      try bridge.unplug(1)
      let began = ContinuousClock.now
      try await eventually("beta to be missed", seconds: 35, every: 250) {
        try await !isConnected()
      }
      print("network: a peer that vanished was missed after \(ContinuousClock.now - began)")
      for member in household.members { try await household.stop(member, SIGKILL) }
    }

    // MARK: Files

    /// Processor time that a process has used, in seconds.
    private static func processorSeconds(_ id: Int32) throws -> Double {
      let text = try String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
      let fields = try #require(text.split(separator: ")").last).split(separator: " ")
      let ticks = (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
      return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    @Test
    func `a node may open as many files as the host lets it, and rests where that is too few`()
      async throws
    {
      let household = try Household()
      let alpha = try await household.create("alpha")
      let beta = try await household.join("beta")
      alpha.launcher = ["prlimit", "--nofile=200:5000"]
      try await household.start(alpha, peers: [])
      let process = try #require(alpha.process)
      let limits = try String(contentsOfFile: "/proc/\(process.id)/limits", encoding: .utf8)
      #expect(limits.contains(/Max open files +5000 +5000/))
      // Room for a few connections more.
      let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/fd").count
      try Shell.run("prlimit", "--pid", "\(process.id)", "--nofile=\(open + 4):5000")
      let strangers = try (0..<40).map { _ in try RawConnection(port: alpha.port, sending: []) }
      try await eventually("the shortage to be logged") {
        process.saidSoFar.contains("no resources for a further connection")
      }
      let before = try Self.processorSeconds(process.id)
      let began = ContinuousClock.now
      // Time itself is tested: a node that retries at once uses a whole processor. This one retries
      // after pauses of 1 s, so the shortage comes back several times, each time without a line.
      try await Task.sleep(for: .seconds(4))
      let used = try Self.processorSeconds(process.id) - before
      let passed = (ContinuousClock.now - began) / .seconds(1)
      print("network: without room for connections \(used) s of processor time in \(passed) s")
      #expect(used < 0.05 * passed)
      let lines = process.saidSoFar.split(separator: "\n").filter { $0.contains("no resources") }
      #expect(lines.count == 1)
      // With room again members come in, past the strangers that wait.
      try Shell.run("prlimit", "--pid", "\(process.id)", "--nofile=4096:5000")
      try await household.start(beta)
      try await household.awaitMeeting()
      withExtendedLifetime(strangers) {}
      for member in household.members { try await household.stop(member) }
    }
  }
}

extension Faults {
  @Suite(.enabled(if: NamespaceSet.isPossible, "network namespaces cannot be made here"))
  struct NamespaceTests {
    /// Partitions as the kernel makes them: packets get lost, and TCP itself has to find out.
    @Test func `after cables were pulled all converge`() async throws {
      let seed = testSeed("cables")
      let household = try Household()
      let namespaces = try Namespaces(household.root.lastPathComponent)
      defer { namespaces.remove() }
      for (index, name) in ["alpha", "beta", "gamma"].enumerated() {
        let member = try await (index == 0 ? household.create(name) : household.join(name))
        member.launcher = namespaces.launcher(index)
        member.host = "0.0.0.0"
      }
      for (index, member) in household.members.enumerated() {
        let peers = (0..<index).map { other in
          Namespaces.address(of: other, towards: index) + ":\(household.members[other].port)"
        }
        try await household.start(member, peers: peers)
      }
      try await household.awaitMeeting()
      try await attack(household, namespaces, seed)
      for member in household.members { try await household.stop(member, SIGKILL) }
    }

    private func attack(
      _ household: Household, _ ways: Namespaces, _ seed: UInt64
    ) async throws {
      let rounds = Faults.number("KITH_CABLES", or: 6)
      let ledger = Ledger()
      let writers = household.members.indices.map { index in
        Writer(client: household.members[index].client, node: index, seed: seed &+ UInt64(index))
      }
      var random = SeededGenerator(seed: seed &+ 100)
      try await ledger.whileWriting(writers) {
        for round in 0..<rounds {
          let node = Int.random(in: 0..<3, using: &random)
          switch round % 3 {
          case 0: try ways.isolate(node)
          case 1: try ways.silence(node, outgoing: true)
          default: try ways.silence(node, outgoing: false)
          }
          try await Task.sleep(for: .milliseconds(Int.random(in: 500...1_500, using: &random)))
          try ways.heal()
          try await Task.sleep(for: .milliseconds(Int.random(in: 200...600, using: &random)))
        }
      }
      let settled = try await household.settle(seconds: 150)
      let problems = ledger.history.problems(try await household.outcome())
      print(
        "cables: \(rounds) partitions, \(ledger.acknowledged) writes acknowledged, settled after "
          + "\(settled)")
      #expect(ledger.failures.isEmpty)
      expectNone(problems, seed: seed)
    }
  }
}
