import KithCrypto
import NIOCore
import Testing

@testable import KithWeb

@Suite struct PageGuardTests {
  private let credentials: PageCredentials
  private let token: String
  private let secrets: (cookie: String, key: String)
  private let guarding: PageGuard

  init() throws {
    var entropy = SeededEntropy(seed: 1)
    (credentials, token) = PageCredentials.make(&entropy)
    secrets = try #require(credentials.trade(token, &entropy))
    guarding = PageGuard(port: 4180, credentials: credentials)
  }

  /// A request of the page itself.
  private func own(_ method: String, _ path: String) -> PageGuard.Request {
    PageGuard.Request(
      method: method, path: path, hosts: ["127.0.0.1:4180"],
      origin: method == "GET" ? nil : "http://127.0.0.1:4180", fetchSite: "same-origin",
      contentType: method == "GET" ? nil : "application/json", cookie: secrets.cookie,
      key: secrets.key)
  }

  @Test(
    "the page's own requests are allowed, also without what browsers add")
  func own() {
    #expect(guarding.judge(own("GET", "/api/status")) == .allowed)
    #expect(guarding.judge(own("POST", "/api/write")) == .allowed)
    var bytes = own("POST", "/api/write")
    bytes.contentType = "application/octet-stream"
    #expect(guarding.judge(bytes) == .allowed)
    var old = own("POST", "/api/write")
    (old.origin, old.fetchSite) = (nil, nil)
    #expect(guarding.judge(old) == .allowed)
  }

  @Test("on the usual port browsers name no port")
  func usualPort() {
    let usual = PageGuard(port: 80, credentials: credentials)
    var request = own("POST", "/api/write")
    #expect(usual.judge(request) == .foreign)
    (request.hosts, request.origin) = (["127.0.0.1"], "http://127.0.0.1")
    #expect(usual.judge(request) == .allowed)
  }

  @Test(
    "another host's name is foreign, also for the page's files: DNS rebinding",
    arguments: [
      nil, "", "127.0.0.1", "127.0.0.1:80", "evil.example", "evil.example:4180", "127.0.0.2:4180",
      "127.0.0.1:4180.evil.example", "[::1]:4180", "localhost:4180",
    ] as [String?])
  func hosts(host: String?) {
    for path in ["/", "/page.js", "/api/token", "/api/status"] {
      var request = own("GET", path)
      request.hosts = host.map { [$0] } ?? []
      #expect(guarding.judge(request) == .foreign)
    }
  }

  @Test("a request that names two hosts is ambiguous")
  func twoHosts() {
    let host = "127.0.0.1:4180"
    for hosts in [[host, "evil.example"], ["evil.example", host], [host, host]] {
      var request = own("GET", "/api/status")
      request.hosts = hosts
      #expect(guarding.judge(request) == .ambiguous)
    }
  }

  @Test(
    "a request with a foreign origin or site is foreign, whatever secrets it has",
    arguments: [
      ("null", nil), ("http://evil.example", nil), ("http://127.0.0.1:4181", nil),
      ("https://127.0.0.1:4180", nil), ("http://localhost:4180", nil), (nil, "cross-site"),
      (nil, "same-site"), (nil, "none"),
    ] as [(String?, String?)])
  func origins(origin: String?, site: String?) {
    for path in ["/api/token", "/api/write"] {
      var request = own("POST", path)
      request.origin = origin
      request.fetchSite = site
      #expect(guarding.judge(request) == .foreign)
    }
  }

  @Test(
    "a body that foreign pages may send without asking is refused",
    arguments: [
      nil, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
      "text/plain; application/json",
    ] as [String?])
  func contentTypes(type: String?) {
    var request = own("POST", "/api/write")
    request.contentType = type
    #expect(guarding.judge(request) == .wrongContentType)
    request.path = "/api/token"
    #expect(guarding.judge(request) == .wrongContentType)
  }

  @Test("a request needs the cookie and the key: neither alone counts")
  func secretsAreNeeded() {
    let wrong = String(repeating: "0", count: 64)
    for (cookie, key) in [
      (nil, nil), (secrets.cookie, nil), (nil, secrets.key), (secrets.cookie, wrong),
      (wrong, secrets.key), (secrets.key, secrets.cookie), (secrets.cookie, ""),
      (secrets.cookie, token),
    ] {
      var request = own("GET", "/api/status")
      (request.cookie, request.key) = (cookie, key)
      #expect(guarding.judge(request) == .noCredentials)
    }
  }

  @Test("the page's files, and the trade of the token, need no secrets")
  func open() {
    var request = own("GET", "/")
    (request.cookie, request.key, request.fetchSite) = (nil, nil, "none")
    #expect(guarding.judge(request) == .allowed)
    request = own("POST", "/api/token")
    (request.cookie, request.key) = (nil, nil)
    #expect(guarding.judge(request) == .tradesToken)
  }
}

@Suite struct PageCredentialsTests {
  @Test("the token is traded once, and nothing else is")
  func once() throws {
    var entropy = SeededEntropy(seed: 2)
    let (credentials, token) = PageCredentials.make(&entropy)
    #expect(token.count == 64)
    for wrong in ["", String(token.dropLast()), token + "0", token.uppercased()] {
      #expect(credentials.trade(wrong, &entropy) == nil)
    }
    let secrets = try #require(credentials.trade(token, &entropy))
    #expect(Set([secrets.cookie, secrets.key, token]).count == 3)
    #expect(credentials.trade(token, &entropy) == nil)
    #expect(credentials.areHeld(cookie: secrets.cookie, key: secrets.key))
  }

  @Test("no secrets count before the token was traded")
  func notBefore() {
    var entropy = SeededEntropy(seed: 3)
    let (credentials, token) = PageCredentials.make(&entropy)
    #expect(!credentials.areHeld(cookie: token, key: token))
    #expect(!credentials.areHeld(cookie: "", key: ""))
  }
}

/// A body that dripped kept its connection for as long as one liked.
@Suite struct RequestTimeTests {
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test func `a request has a time to arrive, however it drips`() {
    var time = RequestTime()
    let inTime = (0..<60).map { time.read(at: start + .seconds(Int64($0))) }
    #expect(!inTime.contains(false))
    let late = time.read(at: start + RequestTime.longest)
    #expect(!late)
  }

  @Test func `the rest of a body behind its answer has no more time`() {
    var time = RequestTime()
    var read = [time.read(at: start)]
    time.wrote()
    read += [59, 118, 119].map { time.read(at: start + .seconds($0)) }
    #expect(read == [true, true, true, false])
  }

  @Test func `requests that are answered go on for ever`() {
    var time = RequestTime()
    for minute in 0..<100 {
      let isInTime = time.read(at: start + .minutes(Int64(minute)))
      time.wrote()
      #expect(isInTime)
    }
  }
}
