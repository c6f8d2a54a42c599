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
