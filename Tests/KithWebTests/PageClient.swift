import Foundation
import KithTestSupport
import NIOCore
import NIOPosix
import Testing

/// A client that sends each request as given, on a connection of its own.
struct PageClient: Sendable {
  struct Answer {
    var status: Int
    /// With lower-case names.
    var headers: [String: String]
    var body: String

    var members: [String: Any] {
      get throws {
        let value = try JSONSerialization.jsonObject(with: Data(body.utf8))
        return try #require(value as? [String: Any])
      }
    }

    /// The code of the error, or "".
    var code: String {
      get throws { try (members["error"] as? [String: Any])?["code"] as? String ?? "" }
    }

    var message: String {
      get throws { try (members["error"] as? [String: Any])?["message"] as? String ?? "" }
    }
  }

  let port: Int
  var cookie: String?
  var key: String?

  /// A client that has traded the token of the page's address.
  static func opening(_ address: String) async throws -> PageClient {
    let parts = try #require(URL(string: address))
    var client = PageClient(port: try #require(parts.port))
    let answer = try await client.post("/api/token", ["token": try #require(parts.fragment)])
    #expect(answer.status == 200)
    let cookie = try #require(answer.headers["set-cookie"])
    #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
    client.cookie = String(cookie.prefix { $0 != ";" })
    client.key = try answer.members["key"] as? String
    return client
  }

  /// A nil `hosts` is the server's own address.
  func get(_ path: String, hosts: [String]? = nil) async throws -> Answer {
    try await whole(request("GET", path, body: nil, hosts: hosts))
  }

  func post(
    _ path: String, _ body: [String: Any] = [:], type: String = "application/json"
  ) async throws -> Answer {
    try await post(path, JSONSerialization.data(withJSONObject: body), type: type)
  }

  func post(_ path: String, _ body: Data, type: String) async throws -> Answer {
    try await whole(request("POST", path, body: body, type: type))
  }

  /// Sends a request without a body.
  func ask(_ method: String, _ path: String) async throws -> Answer {
    try await whole(request(method, path, body: nil))
  }

  /// Sends a request of any version with further header fields; returns all that comes until the server
  /// closes the connection, or the text so far satisfies the condition. Fails after 20 s.
  func text(
    _ method: String, _ path: String, version: String, fields: [String], body: Data? = nil,
    until isEnough: @escaping @Sendable (String) async throws -> Bool = { _ in false }
  ) async throws -> String {
    let request = request(
      method, path, version: version, fields: fields, body: body, type: "application/json")
    return try await exchange(request, until: isEnough)
  }

  /// Reads a stream until its text so far satisfies the condition; fails after 20 s. As the page does,
  /// it tries again while the server has as many streams as it allows: earlier ones may still end.
  func stream(
    _ path: String, until isEnough: @escaping @Sendable (String) async throws -> Bool
  ) async throws -> String {
    for _ in 0..<100 {
      let text = try await exchange(request("GET", path, body: nil), until: isEnough)
      if !text.hasPrefix("HTTP/1.1 429") { return text }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw NotInTime("no stream ended")
  }

  private func request(
    _ method: String, _ path: String, version: String = "HTTP/1.1",
    fields: [String] = ["Connection: close"], body: Data?, type: String = "",
    hosts: [String]? = nil
  ) -> Data {
    var lines = ["\(method) \(path) \(version)"] + fields
    lines += (hosts ?? ["127.0.0.1:\(port)"]).map { "Host: \($0)" }
    if let cookie { lines.append("Cookie: \(cookie)") }
    if let key { lines.append("X-Kith-Key: \(key)") }
    if let body { lines += ["Content-Type: \(type)", "Content-Length: \(body.count)"] }
    return Data((lines + ["", ""]).joined(separator: "\r\n").utf8) + (body ?? Data())
  }

  private func whole(_ request: Data) async throws -> Answer {
    let text = try await exchange(request) { _ in false }
    let parts = try #require(text.range(of: "\r\n\r\n"))
    let lines = text[..<parts.lowerBound].components(separatedBy: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] =
        line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    return Answer(
      status: try #require(Int(lines[0].split(separator: " ")[1])), headers: headers,
      body: String(text[parts.upperBound...]))
  }

  private func exchange(
    _ request: Data, until isEnough: @escaping @Sendable (String) async throws -> Bool
  ) async throws -> String {
    let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try await outbound.write(ByteBuffer(bytes: request))
      return try await withThrowingTaskGroup(of: String?.self) { group in
        group.addTask {
          var text = Data()
          for try await part in inbound {
            text.append(contentsOf: part.readableBytesView)
            let soFar = String(decoding: text, as: UTF8.self)
            if try await isEnough(soFar) { return soFar }
          }
          return String(decoding: text, as: UTF8.self)
        }
        group.addTask {
          try await Task.sleep(for: .seconds(20))
          return nil
        }
        defer { group.cancelAll() }
        return try #require(try await group.next() ?? nil, "no answer within 20 s")
      }
    }
  }
}
