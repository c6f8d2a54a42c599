internal import Foundation
import Kith
import KithCarriersTesting
import Testing

@testable import KithCarriers

@Suite(.timeLimit(.minutes(1)))
struct S3ServerTests {
  private static func key(
    _ secret: String = "open/sesame+key", _ name: String = "AKIAKITH"
  ) -> CarrierCredentials {
    .s3(accessKey: name, SecretText(Array(secret.utf8)))
  }

  /// nanio computes each signature itself.
  @Test(
    .enabled(
      if: StorageServer.Kind.nanio.isThere, "nanio of PyPI is missing: Tests/carrier-servers"))
  func nanio() async throws {
    let server = try await StorageServer(.nanio)
    let url = server.url("plain", "kith-tests/some%20prefix")
    let address = try CarrierAddress(.s3, url)
    let conformance = CarrierConformance(hasPlaces: false, place: freshPlace) {
      try storage(at: address, credentials: Self.key())
    }
    await expectConformance(conformance)
    for wrong in [Self.key("open/barley"), Self.key("open/sesame+key", "AKIABARLEY")] {
      let carrier = try storage(at: address, credentials: wrong)
      await expectFailure(.denied) { try await carrier.makePlace(freshPlace()) }
      await expectFailure(.denied) { _ = try await carrier.list(freshPlace(), limit: 1) }
      await expectFailure(.denied) {
        _ = try await carrier.get("aa", from: freshPlace(), limit: 1)
      }
      await expectFailure(.denied) { try await carrier.put([1], as: "aa", in: freshPlace()) }
    }
    try await checkMissingBucket(server.url("plain", "other-bucket"))
  }

  @Test(
    .enabled(if: StorageServer.Kind.moto.isThere, "moto of PyPI is missing: Tests/carrier-servers"))
  func moto() async throws {
    let server = try await StorageServer(.moto)
    let url = server.url("plain", "kith-tests")
    try await send("PUT", url)
    let address = try CarrierAddress(.s3, url)
    let conformance = CarrierConformance(hasPlaces: false, place: freshPlace) {
      try storage(at: address, credentials: Self.key())
    }
    await expectConformance(conformance)
    try await checkMissingBucket(server.url("plain", "other-bucket"))

    // libcurl resolves all names below `localhost` itself.
    let byHost = try storage(
      at: CarrierAddress(.s3, server.url("plain", "kith-tests?style=host", host: "localhost")),
      credentials: Self.key())
    let place = freshPlace()
    try await byHost.put([1, 2], as: "aa", in: place)
    #expect(try await byHost.list(place, limit: 1) == [CarrierObject(name: "aa", bytes: 2)])
    let byPath = try storage(at: address, credentials: Self.key())
    #expect(try await byPath.get("aa", from: place, limit: 2) == [1, 2])

    let carrier = try storage(at: address, credentials: Self.key())
    #expect(try await carrier.warnings(for: freshPlace()) == [])
    try await send(
      "PUT", url + "?versioning=",
      "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
    #expect(try await carrier.warnings(for: freshPlace()).count == 1)
    #expect(carrier.shortestPause == .seconds(20))
  }

  @Test(
    .enabled(if: StorageServer.Kind.moto.isThere, "moto of PyPI is missing: Tests/carrier-servers"))
  func aListingHasSeveralPages() async throws {
    let server = try await StorageServer(.moto)
    let url = server.url("plain", "kith-tests")
    try await send("PUT", url)
    let bucket = try #require(CarrierAddress(.s3, url).bucket)
    let carrier = S3Carrier(bucket, Self.key(), CarrierOptions(), pageKeys: 3)
    let place = freshPlace()
    for index in 0..<8 { try await carrier.put([1], as: "a\(index)", in: place) }
    // Keys below another directory, and in the place of others, are no objects.
    try await send("PUT", "\(url)/\(place)/sub/aa", "x")
    try await send("PUT", "\(url)/\(place)/x%20%3C%26.txt", "x")
    try await send("PUT", "\(url)/\(place)x/aa", "x")
    let listed = try await carrier.list(place, limit: 8).map(\.name).sorted()
    #expect(listed == (0..<8).map { "a\($0)" })
    await expectFailure(.tooMuch) { _ = try await carrier.list(place, limit: 7) }
  }

  private func checkMissingBucket(_ url: String) async throws {
    let carrier = try storage(at: CarrierAddress(.s3, url), credentials: Self.key())
    let place = freshPlace()
    await expectFailure(.notThere) { try await carrier.makePlace(place) }
    await expectFailure(.notThere) { _ = try await carrier.list(place, limit: 1) }
    await expectFailure(.notThere) { _ = try await carrier.get("aa", from: place, limit: 1) }
    await expectFailure(.notThere) { try await carrier.put([1], as: "aa", in: place) }
    await expectFailure(.notThere) { try await carrier.delete("aa", from: place) }
  }

  /// A request without a signature.
  private func send(_ method: String, _ url: String, _ body: String = "") async throws {
    let target = String(url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })
    let client = HTTPClient(try WebAddress(String(url.prefix { $0 != "?" })), CarrierOptions())
    let answer = try await client.send(
      HTTPRequest(method: method, target: target, body: Array(body.utf8)))
    try #require(answer.isSuccess)
  }
}
