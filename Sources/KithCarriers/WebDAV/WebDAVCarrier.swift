import Kith
import Synchronization

/// A collection of a WebDAV server (RFC 4918).
final class WebDAVCarrier: CarrierStorage {
  private let client: HTTPClient
  private let credentials: CarrierCredentials
  /// The way to sign in that the server asked for.
  private let way = Mutex<HTTPAuthentication?>(nil)

  /// Over plain http a token is refused, and a password is sent only as a digest, unless the host is
  /// this computer.
  ///
  /// - Throws: ``CarrierFailure/Code/denied`` for credentials that may not be sent to the URL.
  init(
    _ url: WebAddress, _ credentials: CarrierCredentials, _ options: CarrierOptions
  ) throws(CarrierFailure) {
    if case .bearer = credentials, !url.isSecure, !HostRules.isLoopback(url.host) {
      throw CarrierFailure(.denied, "A token is not sent without TLS; use https.")
    }
    client = HTTPClient(url, options)
    self.credentials = credentials
  }

  /// Makes the place's collections, and those above it that are missing.
  func makePlace(_ place: String) async throws(CarrierFailure) {
    try await make(client.address.segments + ObjectNames.directories(of: place))
  }

  /// Lists the members of the place's collection (PROPFIND, depth 1).
  func list(
    _ place: String, limit: Int
  ) async throws(CarrierFailure) -> [CarrierObject] {
    try await find(path(of: place), depth: 1, limit: limit) {
      members throws(CarrierFailure) in
      var objects: [CarrierObject] = []
      for member in members where !member.isDirectory && ObjectNames.isObject(member.name) {
        guard let bytes = member.bytes else {
          throw CarrierFailure(.unexpected, "The server does not say how long objects are.")
        }
        guard objects.count < limit else { throw CarrierFailure.tooMany(limit) }
        objects.append(CarrierObject(name: member.name, bytes: bytes))
      }
      return objects
    }
  }

  func get(
    _ name: String, from place: String, limit: Int
  ) async throws(CarrierFailure) -> [UInt8]? {
    let request = HTTPRequest(
      method: "GET", target: try path(of: place) + ObjectNames.checked(name),
      limit: max(limit, CarrierLimits.answerBytes))
    let answer = try await send(request)
    switch answer.status {
    case 200: return try answer.object(name, limit: limit, from: client.address)
    case 404, 410:
      // There is no such object, or no place.
      try await find(path(of: place))
      return nil
    default: throw CarrierFailure(answer, from: client.address)
    }
  }

  /// Puts an object under its own name. Some servers list it before it is whole.
  func put(
    _ bytes: [UInt8], as name: String, in place: String
  ) async throws(CarrierFailure) {
    let request = HTTPRequest(
      method: "PUT", target: try path(of: place) + ObjectNames.checked(name),
      headers: [("Content-Type", "application/octet-stream")], body: bytes)
    let answer = try await send(request)
    switch answer.status {
    case 200, 201, 204: break
    // RFC 4918, section 9.7.1: the collection is missing.
    case 409:
      throw CarrierFailure(
        .notThere, "\(client.address.origin) has no directory \(try path(of: place)) (status 409).")
    default:
      let failure = CarrierFailure(answer, from: client.address, sent: bytes.count)
      // nginx has status 500 for a missing collection.
      if failure.code == .unexpected { try await find(path(of: place)) }
      throw failure
    }
  }

  /// Deletes an object. Some servers move it to a bin.
  func delete(_ name: String, from place: String) async throws(CarrierFailure) {
    let request = HTTPRequest(
      method: "DELETE", target: try path(of: place) + ObjectNames.checked(name))
    let answer = try await send(request)
    switch answer.status {
    case 200, 202, 204: break
    case 404, 410: try await find(path(of: place))
    default: throw CarrierFailure(answer, from: client.address)
    }
  }

  /// Warns if the address is that of a server that has a bin.
  func warnings(for place: String) async throws(CarrierFailure) -> [String] {
    try await find(path(of: place))
    // Nextcloud and ownCloud keep deleted files in a bin, and tell so only in their own interfaces.
    guard client.address.segments.contains("remote.php") else { return [] }
    return ["The server keeps deleted objects in its bin for a while; they count as used space."]
  }
}

extension WebDAVCarrier {
  /// Makes a collection, and before it the one that holds it.
  private func make(_ segments: [String]) async throws(CarrierFailure) {
    let target = segments.map { "/" + $0 }.joined() + "/"
    do throws(CarrierFailure) {
      try await find(target)
      return
    } catch {
      guard error.code == .notThere, !segments.isEmpty else { throw error }
    }
    try await make(segments.dropLast())
    let answer = try await send(HTTPRequest(method: "MKCOL", target: target))
    // 405: another device has made it meanwhile.
    guard answer.isSuccess || answer.status == 405 else {
      throw CarrierFailure(answer, from: client.address)
    }
  }

  /// Fails unless there is a collection.
  private func find(_ target: String) async throws(CarrierFailure) {
    try await find(target, depth: 0, limit: 0) { _ in }
  }

  /// Reads the properties of a collection, and with depth 1 of its members, on the request's thread.
  /// `limit`: the most objects among them.
  private func find<Value: Sendable>(
    _ target: String, depth: Int, limit: Int,
    _ read: @escaping @Sendable ([Multistatus.Member]) throws(CarrierFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    let members = min(limit, 1 << 20) + CarrierLimits.foreignMembers
    let bytes =
      CarrierLimits.answerBytes
      + (depth == 0 ? 0 : members * (CarrierLimits.memberBytes + target.utf8.count))
    let origin = client.address.origin
    let question =
      "<?xml version=\"1.0\" encoding=\"utf-8\"?><propfind xmlns=\"DAV:\"><prop><resourcetype/>"
      + "<getcontentlength/></prop></propfind>"
    let request = HTTPRequest(
      method: "PROPFIND", target: target,
      headers: [("Depth", String(depth)), ("Content-Type", "application/xml; charset=utf-8")],
      body: Array(question.utf8), limit: bytes)
    let address = client.address
    return try await send(request) { answer throws(CarrierFailure) -> Value in
      guard answer.status == 207 else {
        throw .noWebDAV(answer, at: address) ?? CarrierFailure(answer, from: address)
      }
      return try XMLScanner.serially { () throws(CarrierFailure) -> Value in
        let found: [Multistatus.Member]
        do throws(XMLScanner.Malformed) {
          found = try Multistatus(answer.body, limit: members).members
        } catch {
          throw CarrierFailure(error, inListingOf: origin, limit: limit)
        }
        // It must name the collection itself: any file has properties too.
        guard found.contains(where: \.isDirectory) else {
          throw CarrierFailure(.notThere, "\(origin)\(target) is no directory.")
        }
        return try read(found)
      }
    }
  }

  private func send(_ request: HTTPRequest) async throws(CarrierFailure) -> HTTPAnswer {
    try await send(request) { $0 }
  }

  /// `read` takes the answer in, on the request's thread.
  private func send<Value: Sendable>(
    _ request: HTTPRequest,
    _ read: @escaping @Sendable (HTTPAnswer) throws(CarrierFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    switch credentials {
    case .none, .s3: return try await client.send(request, reading: read)
    case .bearer(let token):
      return try await client.send(request, login: .bearer(token), reading: read)
    case .password(let user, let password):
      let allowed = Self.ways(to: client.address)
      var way = way.withLock { $0 }
      if way == nil, request.method == "PUT" {
        // Find out with a small request, so that no object is sent twice.
        let path = client.address.path + "/"
        let small = HTTPRequest(method: "PROPFIND", target: path, headers: [("Depth", "0")])
        let answer = try await client.send(small, login: .password(user: user, password, allowed))
        way = note(answer, allowed)
      }
      let isWayKnown = way != nil
      return try await client.send(
        request, login: .password(user: user, password, way ?? allowed)
      ) { answer throws(CarrierFailure) in
        if !isWayKnown { _ = self.note(answer, allowed) }
        // The server may ask for another way from now on.
        if answer.status == 401 { self.way.withLock { $0 = nil } }
        return try read(answer)
      }
    }
  }

  /// The ways to sign in that do not show a password to the network.
  static func ways(to address: WebAddress) -> HTTPAuthentication {
    address.isSecure || HostRules.isLoopback(address.host) ? [.basic, .digest] : .digest
  }

  private func note(
    _ answer: HTTPAnswer, _ allowed: HTTPAuthentication
  ) -> HTTPAuthentication? {
    let offered = answer.offered.intersection(allowed)
    let best: HTTPAuthentication? =
      offered.contains(.digest) ? .digest : offered.contains(.basic) ? .basic : nil
    if let best { way.withLock { $0 = best } }
    return best
  }

  private func path(of place: String) throws(CarrierFailure) -> String {
    try (client.address.segments + ObjectNames.directories(of: place)).map { "/" + $0 }.joined()
      + "/"
  }
}

/// The answer to PROPFIND (RFC 4918, section 14.16).
struct Multistatus: Equatable {
  struct Member: Equatable {
    /// The last part of its URL, decoded.
    var name: String
    var isDirectory: Bool
    /// Nil if the server does not say it.
    var bytes: Int?
  }

  var members: [Member] = []

  /// Parses a document.
  ///
  /// Only properties with status 200 count. URLs may be absolute, or begin with another path if the
  /// server is behind a proxy: so only their last part counts.
  ///
  /// - Throws: If the document is no whole multistatus, or says that it leaves members out. At its
  ///   first member beyond the limit, whatever is one.
  init(_ document: [UInt8], limit: Int) throws(XMLScanner.Malformed) {
    var response = Response()
    var properties = Properties()
    var members: [Member] = []
    var isMultistatus = false
    try XMLScanner.forEachElement(
      of: document, limit: (limit + 1) * CarrierLimits.memberElements
    ) { path, text throws(XMLScanner.Malformed) in
      let text = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      switch path.dropFirst() {
      case []: isMultistatus = path == ["multistatus"]
      case ["response", "href"]: response.href = text
      case ["response", "status"]: response.status = text
      case ["response", "propstat", "prop", "resourcetype", "collection"]:
        properties.isDirectory = true
      case ["response", "propstat", "prop", "getcontentlength"]:
        properties.bytes = Int(text).flatMap { $0 >= 0 ? $0 : nil }
      case ["response", "propstat", "status"]: properties.isFound = Self.isFound(text)
      case ["response", "propstat"]:
        if properties.isFound {
          response.isDirectory = response.isDirectory || properties.isDirectory
          response.bytes = properties.bytes ?? response.bytes
        }
        properties = Properties()
      case ["response"]:
        guard let member = response.member else { throw XMLScanner.Malformed(offset: 0) }
        guard members.count < limit else {
          throw XMLScanner.Malformed(offset: 0, isTooMuch: true)
        }
        members.append(member)
        response = Response()
      default: break
      }
    }
    guard isMultistatus else { throw XMLScanner.Malformed(offset: 0) }
    self.members = members
  }

  private struct Properties {
    var isFound = false
    var isDirectory = false
    var bytes: Int?
  }

  private struct Response {
    var href: String?
    /// For a member without properties. A server that leaves members out has one with status 507.
    var status: String?
    var isDirectory = false
    var bytes: Int?

    /// Nil if it has no URL, or a status that is no success.
    var member: Member? {
      // The root has no last part.
      guard status.map(isFound) ?? true, let href, !href.isEmpty,
        let name = PercentCoding.decode(href.split(separator: "/").last ?? "")
      else { return nil }
      return Member(name: name, isDirectory: isDirectory, bytes: bytes)
    }
  }

  /// Whether the second word of `HTTP/1.1 200 OK` begins with 2.
  private static func isFound(_ status: String) -> Bool {
    status.split(separator: " ").dropFirst().first?.first == "2"
  }
}
