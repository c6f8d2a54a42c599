import Kith
import KithTestSupport
import Testing

@testable import KithCarriers

/// Servers that answer wrongly: `Servers/faults.py`.
@Suite(
  .enabled(if: StorageServer.Kind.faults.isThere, "Debian's python3 is missing"),
  .timeLimit(.minutes(1)))
struct FaultTests {
  private let server: StorageServer

  init() async throws { server = try await StorageServer(.faults) }

  private func webdav(
    _ fault: String, _ credentials: CarrierCredentials = .none, quiet: Duration = .seconds(30),
    longest: Duration = .seconds(60)
  ) throws -> any CarrierStorage {
    var options = CarrierOptions()
    options.quiet = quiet
    options.longest = longest
    return try storage(
      at: CarrierAddress(.webdav, server.url("plain", fault)), credentials: credentials,
      options: options)
  }

  private func bucket(_ fault: String) throws -> any CarrierStorage {
    try storage(
      at: CarrierAddress(.s3, server.url("plain", fault)),
      credentials: .s3(accessKey: "a", SecretText([1])))
  }

  /// It was said to be full.
  @Test func aServerThatTakesNoObjectOfThatSizeIsNamed() async throws {
    let carrier = try webdav("too-large")
    let failure = await failure { try await carrier.put([1, 2, 3], as: "aa", in: "place") }
    #expect(failure?.message.contains("refuses objects of 3 bytes") == true)
    #expect(failure?.message.contains("client_max_body_size") == true)
  }

  @Test func eachFaultFailsWithItsCode() async throws {
    let cases: [(String, CarrierFailure.Code)] = [
      ("wait-seconds", .busy), ("wait-date", .busy), ("full", .full), ("forbidden", .denied),
      ("unauthorized", .denied), ("truncated", .unreachable), ("truncated-chunks", .unreachable),
      ("half-xml", .unexpected), ("entities", .unexpected), ("endless", .tooMuch),
      ("too-long", .tooMuch), ("endless-headers", .tooMuch), ("moved-out", .untrusted),
      ("moved-scheme", .untrusted), ("moved-round", .unexpected), ("nothing", .notThere),
      ("garbage", .unexpected),
    ]
    for (fault, code) in cases {
      let carrier = try webdav(fault)
      let failure = await failure { _ = try await carrier.list("place", limit: 10) }
      #expect(failure?.code == code, "\(fault): \(failure?.message ?? "no failure")")
    }
  }

  /// The advice led nowhere.
  @Test func eachFaultSaysWhatToDo() async throws {
    let password = CarrierCredentials.password(user: "kith", SecretText([1]))
    let cases: [(String, CarrierCredentials, String)] = [
      ("unauthorized", .none, "none were given"), ("forbidden", .none, "none were given"),
      ("forbidden", password, "refuses the credentials"),
      ("moved-out", .none, "give that address"), ("nothing", .none, "/nothing/place/"),
      ("no-webdav", .none, "There is no WebDAV at"), ("page", .none, "There is no WebDAV at"),
    ]
    for (fault, credentials, words) in cases {
      let carrier = try webdav(fault, credentials)
      let failure = await failure { _ = try await carrier.list("place", limit: 10) }
      #expect(failure?.message.contains(words) == true, "\(fault): \(failure?.message ?? "none")")
    }
    #expect(
      CarrierFailure.redirect(to: "https://other.example/dav").contains("https://other.example/dav")
    )
    #expect(!CarrierFailure.redirect(to: "https://x/\u{1B}").contains("\u{1B}"))
  }

  @Test func waitsAreThoseOfTheServer() async throws {
    for (fault, wait) in [("wait-seconds", 7), ("wait-date", 86_400)] {
      let carrier = try webdav(fault)
      let failure = await failure { try await carrier.put([1], as: "aa", in: "place") }
      #expect(failure?.retryAfter == .seconds(wait))
    }
    let slow = try bucket("s3-slow")
    let failure = await failure { try await slow.put([1], as: "aa", in: "place") }
    #expect(failure?.code == .busy)
    #expect(failure?.retryAfter == .seconds(3))
  }

  @Test func redirectsWithinTheServerAreFollowed() async throws {
    let carrier = try webdav("moved")
    #expect(try await carrier.list("place", limit: 1) == [])
  }

  @Test func anObjectWithoutALengthIsRefused() async throws {
    let carrier = try webdav("no-length")
    await expectFailure(.unexpected) { _ = try await carrier.get("aa", from: "place", limit: 100) }
  }

  @Test func aPutThatBreaksOffFails() async throws {
    let carrier = try webdav("cut-put")
    await expectFailure(.unreachable) {
      try await carrier.put([UInt8](repeating: 1, count: 4 << 20), as: "aa", in: "place")
    }
  }

  @Test func aServerThatSaysNothingIsLeft() async throws {
    let carrier = try webdav("silent", quiet: .milliseconds(300))
    await expectFailure(.unreachable) { _ = try await carrier.list("place", limit: 1) }
  }

  /// Each byte is progress, but not for ever.
  @Test func aServerThatDripsIsLeft() async throws {
    let carrier = try webdav("drip", quiet: .seconds(30), longest: .milliseconds(500))
    await expectFailure(.unreachable) { _ = try await carrier.list("place", limit: 10_000) }
  }

  @Test func aCancelledRequestEndsSoon() async throws {
    let carrier = try webdav("silent")
    let task = Task { try await carrier.list("place", limit: 1) }
    let start = ContinuousClock.now
    task.cancel()
    await expectFailure(.unreachable) { _ = try await task.value }
    #expect(ContinuousClock.now - start < .seconds(5))
  }

  @Test func digestsWithSHA256() async throws {
    let carrier = try webdav(
      "digest", .password(user: "kith", SecretText(Array("open sesame".utf8))))
    #expect(try await carrier.list("place", limit: 1) == [])
    try await carrier.put([UInt8](repeating: 1, count: 100_000), as: "aa", in: "place")
    let wrong = try webdav("digest", .password(user: "kith", SecretText(Array("x".utf8))))
    await expectFailure(.denied) { _ = try await wrong.list("place", limit: 1) }
  }

  /// A password goes to the network only as a digest.
  @Test func basicIsForTLSAndThisComputer() async throws {
    for (url, isAllowed) in [
      ("https://cloud.example/", true), ("http://127.0.0.1/", true), ("http://localhost/", true),
      ("http://[::1]/", true), ("http://cloud.example/", false), ("http://192.168.1.2/", false),
      ("http://localhost.example/", false),
    ] {
      #expect(WebDAVCarrier.ways(to: try WebAddress(url)).contains(.basic) == isAllowed)
    }
    let client = HTTPClient(try WebAddress(server.url()), CarrierOptions())
    let request = HTTPRequest(method: "PROPFIND", target: "/basic/place/")
    for (ways, status) in [(HTTPAuthentication.digest, 401), ([.digest, .basic], 207)] {
      let answer = try await client.send(
        request, login: .password(user: "kith", SecretText([1]), ways))
      #expect(answer.status == status)
    }
  }

  @Test func tokens() async throws {
    let carrier = try webdav("token", .bearer(SecretText(Array("open-sesame".utf8))))
    #expect(try await carrier.list("place", limit: 1) == [])
    let wrong = try webdav("token", .bearer(SecretText(Array("x".utf8))))
    await expectFailure(.denied) { _ = try await wrong.list("place", limit: 1) }
  }

  @Test func certificatesAreVerified() async throws {
    let options = CarrierOptions(authorityFile: "\(server.folder)/ca.pem")
    func carrier(_ port: String, _ options: CarrierOptions) throws -> any CarrierStorage {
      try storage(
        at: CarrierAddress(.webdav, server.url(port, "place")), credentials: .none, options: options
      )
    }
    #expect(try await carrier("good", options).list("place", limit: 1) == [])
    for (port, options) in [
      ("expired", options), ("elsewhere", options), ("good", CarrierOptions()),
      ("good", CarrierOptions(authorityFile: "/nowhere")),
    ] {
      let carrier = try carrier(port, options)
      let failure = await failure { _ = try await carrier.list("place", limit: 1) }
      #expect(failure?.code == .untrusted, "\(port): \(failure?.message ?? "no failure")")
    }
  }

  /// The system's were trusted too. Its directory cannot be changed, so another one stands for it.
  @Test func anAuthorityFileReplacesTheBuiltInDirectory() async throws {
    let curl = try CurlLibrary.get()
    let origin = try WebAddress(server.url("good")).origin
    let directory = "\(server.folder)/trusted"
    func status(_ options: CarrierOptions) async throws(CarrierFailure) -> Int {
      try await onThread(of: BlockingThreads.requests) { work throws(CarrierFailure) -> Int in
        let connection = try HTTPConnection(curl)
        guard curl.set(connection.easy, .authorityDirectory, text: directory) else { return 0 }
        let request = HTTPRequest(method: "PROPFIND", target: "/place/")
        return try connection.send(request, to: origin, login: .none, options, work).status
      }
    }
    #expect(try await status(CarrierOptions()) == 207)
    let own = CarrierOptions(authorityFile: "\(server.folder)/ca.pem")
    #expect(try await status(own) == 207)
    let other = CarrierOptions(authorityFile: "\(server.folder)/elsewhere.pem")
    await expectFailure(.untrusted) { _ = try await status(other) }
  }

  /// The certificate was blamed.
  @Test func aPortWithoutTLSIsNamed() async throws {
    let plain = "https://127.0.0.1:\(server.ports["plain"] ?? 0)/place"
    let carrier = try storage(at: CarrierAddress(.webdav, plain), credentials: .none)
    let failure = await failure { _ = try await carrier.list("place", limit: 1) }
    #expect(failure?.code == .unreachable, "\(failure?.message ?? "no failure")")
    #expect(failure?.message.contains("speaks https at that port") == true)
  }

  /// A name that resolves to this computer is found out when connecting.
  @Test func resolvedAddressesAreChecked() async throws {
    let url = try WebAddress(server.url("good", "place", host: "localhost"))
    let file = "\(server.folder)/ca.pem"
    let allowed = try WebDAVCarrier(url, .none, CarrierOptions(authorityFile: file))
    #expect(try await allowed.list("place", limit: 1) == [])
    let refused = try WebDAVCarrier(
      url, .none, CarrierOptions(authorityFile: file, allowsLocal: false))
    await expectFailure(.untrusted) { _ = try await refused.list("place", limit: 1) }
  }

  @Test func hostileBuckets() async throws {
    let cases: [(String, CarrierFailure.Code)] = [
      ("s3-pages", .tooMuch), ("s3-round", .unexpected), ("s3-slow", .busy), ("s3-skewed", .denied),
      ("s3-region", .unexpected), ("moved-out", .untrusted), ("place", .unexpected),
    ]
    for (fault, code) in cases {
      let carrier = try bucket(fault)
      let failure = await failure { _ = try await carrier.list("place", limit: 10) }
      #expect(failure?.code == code, "\(fault): \(failure?.message ?? "no failure")")
    }
  }

  @Test func nobodyListens() async throws {
    let carrier = try webdav("place")
    try await server.kill()
    await expectFailure(.unreachable) { _ = try await carrier.list("place", limit: 1) }
  }
}

struct RetryAfterTests {
  /// 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
  private static let date = 784_111_777

  @Test(arguments: [
    ("0", 0), ("120", 120), ("86400", 86_400), ("86401", 86_400),
    ("99999999999999999999999", 86_400), ("Sun, 06 Nov 1994 08:49:37 GMT", 60),
    ("Sun, 06 Nov 1994 08:00:00 GMT", 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
  ])
  func waits(_ text: String, _ seconds: Int) {
    #expect(RetryAfter.parse(text, now: Self.date - 60) == .seconds(seconds))
  }

  @Test(arguments: [
    "", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37", "Sun, 32 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nop 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
    "Sun,  06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
  ])
  func otherTextIsIgnored(_ text: String) {
    #expect(RetryAfter.parse(text, now: Self.date) == nil)
  }
}
