import Glibc
import NIOCore
import Testing

@testable import KithNetwork

struct NetworkFailureTests {
  private func failure(listeningOn hosts: [String], port: UInt16 = 0) async -> NetworkFailure? {
    await NetworkFailure.listening(on: hosts, port: port)
  }

  private func failure(connectingTo text: String) async throws -> NetworkFailure? {
    let address = try PeerAddress(text)
    do {
      let channel = try await Bootstraps.connect(
        to: address, connectTimeout: .seconds(20),
        userTimeout: .seconds(20), handler: { BackPressureHandler() }
      ).get()
      try await channel.close()
      return nil
    } catch {
      return try #require(error as? NetworkFailure)
    }
  }

  @Test func addressesThatCannotBeListenedOnAreSaidInWords() async throws {
    #expect(await failure(listeningOn: ["127.0.0.1"]) == nil)
    let bound = try await Bootstraps.bind(
      hosts: ["127.0.0.1"], port: 0, userTimeout: .seconds(1)
    ) { _ in }
    let port = UInt16(clamping: bound[0].localAddress?.port ?? 0)
    #expect(
      "\(try #require(await failure(listeningOn: ["127.0.0.1"], port: port)))"
        == "port \(port) is taken")
    try await bound[0].close()
    // Of a network for documentation (RFC 5737, RFC 3849), so no host's own.
    for host in ["192.0.2.1", "2001:db8::1"] {
      let failure = try #require(await failure(listeningOn: ["127.0.0.1", host]))
      #expect("\(failure)" == "\(host) is no address of this host")
    }
    let unknown = try #require(await failure(listeningOn: ["no-such-host.invalid"]))
    #expect("\(unknown)" == "no address is known for no-such-host.invalid")
  }

  @Test func addressesThatCannotBeReachedAreSaidInWords() async throws {
    for (text, words) in [
      ("127.0.0.1:1", "nothing listens at 127.0.0.1:1"),
      ("[::1]:1", "nothing listens at [::1]:1"),
      ("localhost:1", "nothing listens at localhost:1"),
      ("no-such-host.invalid:1", "no address is known for no-such-host.invalid"),
      ("[fe80::1%no-such-zone]:1", "no address is known for fe80::1%no-such-zone"),
    ] {
      #expect("\(try #require(await failure(connectingTo: text)))" == words)
    }
  }

  @Test func whatTheSystemSaysIsSaidInWords() throws {
    let address = try PeerAddress("[2001:db8::1]:4114")
    for (code, words) in [
      (ETIMEDOUT, "[2001:db8::1]:4114 does not answer"),
      (EHOSTUNREACH, "there is no route to [2001:db8::1]:4114"),
      (ENETUNREACH, "there is no route to [2001:db8::1]:4114"),
      (EACCES, "the system does not let this user use [2001:db8::1]:4114"),
      (EAFNOSUPPORT, "this host has no IPv6 for [2001:db8::1]:4114"),
      (EMFILE, "[2001:db8::1]:4114: Too many open files"),
    ] {
      let error = IOError(errnoCode: code, reason: "connect(descriptor:addr:size:)")
      #expect("\(NetworkFailure(connectingTo: address, error))" == words)
    }
    let late = NetworkFailure(
      connectingTo: address, ChannelError.connectTimeout(.seconds(5)))
    #expect(late.reason == .noAnswer)
    let listening = NetworkFailure(
      listeningOn: "0.0.0.0", port: 80, IOError(errnoCode: EACCES, reason: "bind"))
    #expect("\(listening)" == "the system does not let this user use 0.0.0.0:80")
  }

  /// The system's resolver gives no IPv6 address, not even a literal, on a host that has no IPv6.
  @Test func literalAddressesTakeNoResolver() throws {
    for text in ["::", "::1", "0.0.0.0", "192.0.2.7", "fe80::1%1", "fe80::1%lo"] {
      let address = try #require(SocketAddress.literal(text, port: 4_114), "\(text)")
      #expect(address.port == 4_114)
      guard case .v6(let v6) = address, text.contains("%") else { continue }
      #expect(v6.address.sin6_scope_id == 1)
      #expect(IPAddressText.host(of: address) == "fe80::1%1")
    }
    for text in ["localhost", "name.local", "1.2.3", "fe80::1%no-such-zone", ""] {
      #expect(SocketAddress.literal(text, port: 1) == nil, "\(text)")
    }
  }

  @Test func allAddressesThatWereTriedAreNamed() throws {
    let tried = ["10.0.0.1:4115", "[::1]:4115"].compactMap { try? PeerAddress($0) }
    let error = PairingError.noneAnswered([
      .cannotConnect(NetworkFailure(host: "10.0.0.1", port: 4_115, reason: .noAnswer)),
      .nothingListens(at: tried[1]), .noInviter(address: tried[0]),
    ])
    #expect(
      "\(error)"
        == "10.0.0.1:4115 does not answer, nothing listens at [::1]:4115, nobody at 10.0.0.1:4115 "
        + "takes a code now; check the address, and that `kith invite` is running; a code or token "
        + "admits one device")
  }
}

struct PeerAddressTests {
  @Test(arguments: [
    ("192.0.2.1:4114", "192.0.2.1", 4114), ("192.0.2.1", "192.0.2.1", 4114),
    ("name.local:80", "name.local", 80), ("name.local", "name.local", 4114),
    ("name.local.:80", "name.local.", 80), ("[::1]:1", "::1", 1), ("[::1]", "::1", 4114),
    ("[2001:db8::1]:65535", "2001:db8::1", 65535),
    ("[fe80::1%eth0]:4114", "fe80::1%eth0", 4114), ("my_host-1:4114", "my_host-1", 4114),
  ])
  func parsesAndPrints(text: String, host: String, port: UInt16) throws {
    let address = try PeerAddress(text)
    #expect(address.host == host)
    #expect(address.port == port)
    #expect(try PeerAddress(address.description) == address)
    #expect(try PeerAddress(host: host, port: port) == address)
  }

  @Test(arguments: [
    ("", PeerAddressError.Problem.empty), (":80", .host), ("host:", .port), ("host:0", .port),
    ("host:65536", .port), ("host:+1", .port), ("host:١", .port), ("host: 1", .port),
    ("::1", .bareIPv6), ("2001:db8::1:4114", .bareIPv6), ("a:b:c", .host), ("[::1", .bracket),
    ("[::1]4114", .port), ("[name]:1", .host), ("[1.2.3.4]:1", .host), ("a b", .host),
    ("a..b", .host), ("[fe80::1%]:1", .host), ("höst", .host), ("host/path", .host),
    ("http://host:80", .host), ("[]:1", .host),
  ])
  func refusesWithTheRightForm(text: String, problem: PeerAddressError.Problem) {
    let error = #expect(throws: PeerAddressError.self) { try PeerAddress(text) }
    #expect(error?.problem == problem)
    #expect(error?.description.contains("[2001:db8::1]:4114") == true)
  }

  @Test func bucketsOfAddresses() throws {
    func bucket(_ text: String) throws -> AddressBucket {
      AddressBucket(try SocketAddress(ipAddress: text, port: 1))
    }
    #expect(try bucket("192.0.2.1") == bucket("::ffff:192.0.2.1"))
    #expect(try bucket("192.0.2.1") != bucket("192.0.2.2"))
    #expect(try bucket("2001:db8::1") == bucket("2001:db8::ffff:1"))
    #expect(try bucket("2001:db8::1") != bucket("2001:db8:0:1::1"))
    #expect(
      IPAddressText.host(of: try SocketAddress(ipAddress: "::ffff:192.0.2.1", port: 1))
        == "192.0.2.1")
  }
}
