import Foundation
import Glibc
import Kith
import KithProxy
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("Keys and values stay secret", .serialized, .timeLimit(.minutes(5)))
struct SecrecyTests {
  private static let keyMarker = "ZebraKeyMarker"
  private static let valueMarker = "OcelotValueMarker"

  /// Plants markers in keys and values that are published, waiting, replaced, removed and refused,
  /// and looks for them in every file of both directories, in what the nodes logged, and in all
  /// bytes that went between them through a recording proxy.
  @Test func `no key and no value on disk, on the wire or in the log`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    // Invited while no node runs, so that the proxy's address is the only one beta has.
    let beta = try await household.join("beta")
    try await household.start(alpha, peers: [])
    var recording = FaultyProxy.Configuration()
    recording.recordingLimitBytes = 64 << 20
    let traffic = try await FaultyProxy.with(target: alpha.port, configuration: recording) {
      proxy in
      try await exchange(household, alpha, beta, through: proxy)
      return Data(proxy.recorded(.both))
    }
    // Drafts, which nobody has published yet.
    let draft = try await household.run(
      beta, "set", Self.keyMarker + "draft", Self.valueMarker + "draft")
    #expect(draft.status == 0)
    var logs = Data()
    for member in household.members {
      logs += Data((member.process?.saidSoFar ?? "").utf8)
      try await household.stop(member, SIGKILL)
    }
    #expect(traffic.count > 10_000)
    Self.expectNoMarker(in: traffic, "the traffic")
    Self.expectNoMarker(in: logs, "the logs")
    var files = 0
    for member in household.members {
      let paths = try FileManager.default.subpathsOfDirectory(atPath: member.directory.path)
      for path in paths {
        guard let data = FileManager.default.contents(atPath: member.directory.path + "/" + path)
        else { continue }
        files += 1
        Self.expectNoMarker(in: data, path)
      }
    }
    #expect(files >= 6)
  }

  /// Has both write while their traffic goes through a proxy, until both show the same.
  private func exchange(
    _ household: Household, _ alpha: Household.Member, _ beta: Household.Member,
    through proxy: FaultyProxy
  ) async throws {
    try await household.start(beta, peers: ["127.0.0.1:\(proxy.port)"])
    try await eventually("the two to meet") { try await !beta.client.status().peers.isEmpty }
    for number in 0..<20 {
      try await alpha.client.write([Self.write(number)], in: "default")
      try await beta.client.write([Self.write(number + 100)], in: "default")
    }
    try await beta.client.write([(Self.keyMarker + "0", nil)], in: "default")
    try await eventually("both to show the same") {
      try await household.export(alpha) == household.export(beta)
    }
    let exported = try await household.export(beta)
    #expect(exported.contains(Self.keyMarker) && exported.contains(Self.valueMarker))
    try await household.stop(beta)
  }

  private static func write(_ number: Int) -> (key: String, value: PropertyListValue?) {
    ("\(keyMarker)\(number)", .string("\(valueMarker)\(number)"))
  }

  private static func expectNoMarker(in data: Data, _ place: String) {
    for marker in [keyMarker, valueMarker] {
      // Also in UTF-16 and base64, which a careless encoding might leave behind.
      for form in [Data(marker.utf8), Data(marker.utf16.flatMap { [UInt8($0 & 0xFF), 0] })] {
        #expect(data.range(of: form) == nil, "\(marker) stands in \(place)")
      }
      let base64 = Data(marker.utf8).base64EncodedString().prefix(16)
      #expect(data.range(of: Data(base64.utf8)) == nil, "\(marker) stands in \(place) in base64")
    }
  }
}
