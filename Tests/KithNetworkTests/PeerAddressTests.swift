import NIOCore
import Testing

@testable import KithNetwork

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
