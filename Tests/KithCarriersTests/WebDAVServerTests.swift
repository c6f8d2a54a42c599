internal import Foundation
import Kith
import KithCarriersTesting
import KithTestSupport
import Testing

@testable import KithCarriers

@Suite(.timeLimit(.minutes(1)))
struct WebDAVServerTests {
  private static func password(_ text: String = "open sesame") -> CarrierCredentials {
    .password(user: "kith", SecretText(Array(text.utf8)))
  }

  private func open(
    _ url: String, _ credentials: CarrierCredentials, _ authorityFile: String? = nil
  ) throws -> any CarrierStorage {
    try storage(
      at: CarrierAddress(.webdav, url), credentials: credentials,
      options: CarrierOptions(authorityFile: authorityFile))
  }

  /// Runs the suite against a collection, and checks that another password is refused.
  private func check(
    _ url: String, _ credentials: CarrierCredentials, authorityFile: String? = nil
  ) async throws {
    let conformance = CarrierConformance(place: freshPlace) {
      try open(url, credentials, authorityFile)
    }
    await expectConformance(conformance)
    guard case .password = credentials else { return }
    for wrong in [Self.password("open barley"), .none] {
      let carrier = try open(url, wrong, authorityFile)
      await expectFailure(.denied) { try await carrier.makePlace(freshPlace()) }
      await expectFailure(.denied) { _ = try await carrier.list(freshPlace(), limit: 1) }
      await expectFailure(.denied) { try await carrier.put([1], as: "aa", in: freshPlace()) }
    }
  }

  private static let apacheIsThere = StorageServer.Kind.apache.isThere

  @Test(.enabled(if: apacheIsThere, "Debian's apache2-bin is missing"))
  func apacheWithDigests() async throws {
    let server = try await StorageServer(.apache)
    try await check(server.url("plain", "digest"), Self.password())
  }

  @Test(.enabled(if: apacheIsThere, "Debian's apache2-bin is missing"))
  func apacheWithTLS() async throws {
    let server = try await StorageServer(.apache)
    let url = server.url("secure", "basic")
    try await check(url, Self.password(), authorityFile: "\(server.folder)/ca.pem")
    // The system's authorities do not know this one.
    let carrier = try open(url, Self.password())
    await expectFailure(.untrusted) { try await carrier.makePlace(freshPlace()) }
  }

  @Test(
    .enabled(if: StorageServer.Kind.nginx.isThere, "Debian's libnginx-mod-http-dav-ext is missing"))
  func nginx() async throws {
    let server = try await StorageServer(.nginx)
    try await check(server.url("plain", "dav"), .none)
  }

  @Test(.enabled(if: StorageServer.Kind.rclone.isThere, "Debian's rclone is missing"))
  func rclone() async throws {
    let server = try await StorageServer(.rclone)
    try await check(server.url(), Self.password())
  }

  @Test(
    .enabled(
      if: StorageServer.Kind.wsgidav.isThere, "wsgidav of PyPI is missing: Tests/carrier-servers"))
  func wsgidav() async throws {
    let server = try await StorageServer(.wsgidav)
    try await check(server.url(), Self.password())
  }

  @Test(.enabled(if: apacheIsThere, "Debian's apache2-bin is missing"))
  func filesOfOthersAreNoObjects() async throws {
    let server = try await StorageServer(.apache)
    let carrier = try open(server.url("plain", "open"), .none)
    let place = freshPlace()
    try await carrier.makePlace(place)
    try await carrier.put([1, 2, 3], as: "aa", in: place)
    let path = "\(server.folder)/data/open/\(place)"
    try Data([1]).write(to: URL(filePath: "\(path)/read me & “ü” %41.txt"))
    try Data([1]).write(to: URL(filePath: "\(path)/.bb.tmp"))
    try FileManager.default.createDirectory(
      atPath: "\(path)/dd", withIntermediateDirectories: false)
    #expect(try await carrier.list(place, limit: 1) == [CarrierObject(name: "aa", bytes: 3)])
  }

  /// Objects are put until the server ends under one: that put must fail.
  @Test(.enabled(if: StorageServer.Kind.rclone.isThere, "Debian's rclone is missing"))
  func aServerThatIsKilledFailsThePut() async throws {
    let server = try await StorageServer(.rclone)
    let carrier = try open(server.url(), Self.password())
    let place = freshPlace()
    try await carrier.makePlace(place)
    let bytes = [UInt8](repeating: 7, count: 4 << 20)
    let (started, continuation) = AsyncStream.makeStream(of: Int.self)
    let puts = Task {
      for index in 0..<10_000 {
        continuation.yield(index)
        try await carrier.put(bytes, as: "a\(index)", in: place)
      }
    }
    for await index in started where index == 3 { break }
    try await server.kill()
    let failure = await failure { try await puts.value }
    #expect(failure?.code == .unreachable)
  }
}
