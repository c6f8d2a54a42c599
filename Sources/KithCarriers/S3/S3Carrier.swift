import Glibc
import Kith

/// A bucket of Amazon S3, or of a server with the same interface.
///
/// A bucket has no directories, so a place is never missing, only its bucket.
final class S3Carrier: CarrierStorage {
  /// How a request names its bucket.
  enum Style: String, Sendable {
    /// `https://ENDPOINT/BUCKET/KEY`
    case path
    /// `https://BUCKET.ENDPOINT/KEY`
    case host
  }

  private let client: HTTPClient
  /// Before each key: the bucket with style path.
  private let root: String
  private let prefix: String
  private let signature: S3Signature?
  /// Objects of one answer.
  private let pageKeys: Int
  /// Seconds since 1970.
  private let now: @Sendable () -> Int

  /// Objects may cost money by the request.
  var shortestPause: Duration { .seconds(20) }

  init(
    _ address: BucketAddress, _ credentials: CarrierCredentials, _ options: CarrierOptions,
    pageKeys: Int = CarrierLimits.pageKeys, now: @escaping @Sendable () -> Int = { time(nil) }
  ) {
    var endpoint = address.endpoint
    if address.style == .host { endpoint.host = "\(address.bucket).\(endpoint.host)" }
    client = HTTPClient(endpoint, options)
    root = address.style == .path ? "/\(address.bucket)/" : "/"
    prefix = address.prefix
    self.pageKeys = pageKeys
    self.now = now
    if case .s3(let accessKey, let secretKey) = credentials {
      signature = S3Signature(
        accessKey: accessKey, secretKey: secretKey, region: address.region)
    } else {
      signature = nil
    }
  }

  /// Checks that the bucket is there, and can be listed.
  func makePlace(_ place: String) async throws(CarrierFailure) {
    _ = try await page(of: directory(place), after: nil, most: 1)
  }

  /// Lists the place's keys, in several requests if there are many.
  func list(
    _ place: String, limit: Int
  ) async throws(CarrierFailure) -> [CarrierObject] {
    let directory = try directory(place)
    var objects: [CarrierObject] = []
    var foreign = 0
    var next: String?
    for _ in 0..<CarrierLimits.pages {
      let page = try await page(of: directory, after: next, most: pageKeys)
      objects += page.objects
      foreign += page.foreign
      guard objects.count <= limit, foreign <= CarrierLimits.foreignMembers else {
        throw CarrierFailure.tooMany(limit)
      }
      guard page.next != nil else { return objects }
      next = page.next
    }
    throw CarrierFailure(
      .tooMuch, "A listing of the bucket has more than \(CarrierLimits.pages) answers.")
  }

  func get(
    _ name: String, from place: String, limit: Int
  ) async throws(CarrierFailure) -> [UInt8]? {
    let key = try directory(place) + ObjectNames.checked(name)
    let address = client.address
    return try await send("GET", key: key, limit: max(limit, CarrierLimits.answerBytes)) {
      answer throws(CarrierFailure) -> [UInt8]? in
      if answer.status == 200 { return try answer.object(name, limit: limit, from: address) }
      // If the bucket is missing, the status is the same.
      if answer.s3Code == "NoSuchKey" { return nil }
      throw CarrierFailure(s3: answer, from: address)
    }
  }

  /// Puts an object, which the server stores whole or not at all.
  func put(
    _ bytes: [UInt8], as name: String, in place: String
  ) async throws(CarrierFailure) {
    let key = try directory(place) + ObjectNames.checked(name)
    let (address, sent) = (client.address, bytes.count)
    try await send("PUT", key: key, body: bytes) { answer throws(CarrierFailure) in
      guard answer.status == 200 else {
        throw CarrierFailure(s3: answer, from: address, sent: sent)
      }
    }
  }

  /// Deletes an object; with versioning the bucket keeps its bytes.
  func delete(_ name: String, from place: String) async throws(CarrierFailure) {
    let key = try directory(place) + ObjectNames.checked(name)
    let address = client.address
    try await send("DELETE", key: key) { answer throws(CarrierFailure) in
      if answer.isSuccess || answer.s3Code == "NoSuchKey" { return }
      throw CarrierFailure(s3: answer, from: address)
    }
  }

  func warnings(for place: String) async throws(CarrierFailure) -> [String] {
    let address = client.address
    let status = try await send("GET", query: [("versioning", "")]) {
      answer throws(CarrierFailure) -> String in
      guard answer.status == 200 else { throw CarrierFailure(s3: answer, from: address) }
      var status = ""
      do throws(XMLScanner.Malformed) {
        try XMLScanner.forEachElement(of: answer.body) { path, text in
          // Servers differ in the name of the root.
          if path.dropFirst() == ["Status"] { status = text }
        }
      } catch {
        throw CarrierFailure(
          .unexpected, "\(address.origin) does not say whether the bucket keeps versions.")
      }
      return status
    }
    guard status == "Enabled" else { return [] }
    return [
      "The bucket keeps every deleted object as a version; suspend versioning, or add a lifecycle "
        + "rule that deletes old versions."
    ]
  }
}

extension S3Carrier {
  /// The beginning of a place's keys.
  private func directory(_ place: String) throws(CarrierFailure) -> String {
    _ = try ObjectNames.directories(of: place)
    return prefix + place + "/"
  }

  private struct Page: Sendable {
    var objects: [CarrierObject] = []
    /// Keys that are no object's.
    var foreign = 0
    /// Nil if this is the last page.
    var next: String?

    init(_ page: S3Page, of directory: String) {
      next = page.next
      for (key, bytes) in page.objects {
        let name = key.dropFirst(directory.count)
        if key.hasPrefix(directory), ObjectNames.isObject(name) {
          objects.append(CarrierObject(name: String(name), bytes: bytes))
        } else {
          foreign += 1
        }
      }
    }
  }

  private func page(
    of directory: String, after token: String?, most: Int
  ) async throws(CarrierFailure) -> Page {
    var query = [
      ("list-type", "2"), ("delimiter", "/"), ("encoding-type", "url"),
      ("max-keys", String(most)), ("prefix", directory),
    ]
    if let token { query.append(("continuation-token", token)) }
    let address = client.address
    // A key is percent-encoded.
    let keyBytes = CarrierLimits.memberBytes + 3 * directory.utf8.count
    return try await send(
      "GET", query: query, limit: CarrierLimits.answerBytes + most * keyBytes
    ) { answer throws(CarrierFailure) -> Page in
      guard answer.status == 200 else { throw CarrierFailure(s3: answer, from: address) }
      return try XMLScanner.serially { () throws(CarrierFailure) -> Page in
        do throws(XMLScanner.Malformed) {
          let page = try S3Page(answer.body, limit: most)
          if page.next == nil || page.next != token { return Page(page, of: directory) }
          throw XMLScanner.Malformed(offset: 0)
        } catch {
          throw CarrierFailure(error, inListingOf: address.origin, limit: most)
        }
      }
    }
  }

  /// `read` takes the answer in, on the request's thread, as documents of errors take time too.
  private func send<Value: Sendable>(
    _ method: String, key: String = "", query: [(name: String, value: String)] = [],
    body: [UInt8]? = nil, limit: Int = CarrierLimits.answerBytes,
    _ read: @escaping @Sendable (HTTPAnswer) throws(CarrierFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    let path = root + PercentCoding.encode(key, keepsSlash: true)
    let text = S3Signature.encoded(query)
    var headers: [(name: String, value: String)] = []
    if let signature {
      let hash = S3Digest.hex(S3Digest.sha256(body ?? []))
      let date = S3Signature.date(now())
      headers = [
        ("host", client.address.authority), ("x-amz-content-sha256", hash), ("x-amz-date", date),
      ]
      headers.append(
        (
          "Authorization",
          signature.authorization(
            method: method, path: path, query: query, headers: headers, bodyHash: hash, date: date)
        ))
    }
    let request = HTTPRequest(
      method: method, target: path + (text.isEmpty ? "" : "?" + text), headers: headers,
      body: body, limit: limit)
    return try await client.send(request, followsRedirects: false, reading: read)
  }
}

/// One answer to `ListObjectsV2`.
struct S3Page {
  var objects: [(key: String, bytes: Int)] = []
  /// Nil if this is the last page.
  var next: String?

  /// - Throws: If the document is no whole listing, or leaves out how it goes on. At its first key
  ///   beyond the limit.
  init(_ document: [UInt8], limit: Int) throws(XMLScanner.Malformed) {
    var key: String?
    var bytes: Int?
    var objects: [(key: String, bytes: Int)] = []
    var isListing = false
    var isEncoded = false
    var isTruncated: Bool?
    var token: String?
    try XMLScanner.forEachElement(
      of: document, limit: (limit + 1) * CarrierLimits.memberElements
    ) { path, text throws(XMLScanner.Malformed) in
      switch path.dropFirst() {
      case []: isListing = path == ["ListBucketResult"]
      case ["EncodingType"]: isEncoded = text == "url"
      case ["IsTruncated"]: isTruncated = ["true": true, "false": false][text]
      case ["NextContinuationToken"]: token = text
      case ["Contents", "Key"]: key = text
      case ["Contents", "Size"]: bytes = Int(text)
      case ["Contents"]:
        guard let foundKey = key, let found = bytes, found >= 0 else {
          throw XMLScanner.Malformed(offset: 0)
        }
        guard objects.count < limit else {
          throw XMLScanner.Malformed(offset: 0, isTooMuch: true)
        }
        objects.append((foundKey, found))
        (key, bytes) = (nil, nil)
      default: break
      }
    }
    guard isListing, let isTruncated, !isTruncated || token?.isEmpty == false else {
      throw XMLScanner.Malformed(offset: 0)
    }
    if isEncoded {
      // As forms are encoded, where a plus is a space. A key that cannot be decoded is no object of
      // ours.
      objects = objects.map {
        (PercentCoding.decode($0.key.replacing("+", with: " ")) ?? "", $0.bytes)
      }
    }
    self.objects = objects
    next = isTruncated ? token : nil
  }
}

extension HTTPAnswer {
  /// The code of an error's document; nil if the body is none, or as long as an object may be.
  var s3Code: String? {
    guard body.count <= CarrierLimits.answerBytes else { return nil }
    var code: String?
    try? XMLScanner.forEachElement(of: body) { path, text in
      if path == ["Error", "Code"], ObjectNames.isObject(text) { code = text }
    }
    return code
  }
}

extension CarrierFailure {
  /// The failure that an answer of S3 stands for: by its code if there is one, else by its status.
  init(s3 answer: HTTPAnswer, from address: WebAddress, sent: Int? = nil) {
    self.init(answer, from: address, sent: sent)
    guard let found = answer.s3Code else { return }
    let (code, text): (Code, String)
    switch found {
    case "NoSuchBucket":
      (code, text) = (.notThere, "has no such bucket; see whether its name is right")
    case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
      "AccountProblem", "AllAccessDisabled", "InvalidSecurity":
      (code, text) = (.denied, "refuses the access key; see whether it is right and may write")
    case "RequestTimeTooSkewed":
      (code, text) = (.denied, "has another time than this computer; set the clock")
    case "SlowDown", "ServiceUnavailable", "Throttling", "TooManyRequests", "RequestLimitExceeded":
      (code, text) = (.busy, "asks to wait")
    case "QuotaExceeded", "InsufficientCapacity", "XMinioStorageFull":
      (code, text) = (.full, "is full; free space on the storage")
    case "EntityTooLarge": (code, text) = (.full, Self.tooLarge(sent))
    case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
      "IllegalLocationConstraintException":
      (code, text) = (.unexpected, "holds the bucket in another region; add ?region=NAME")
    case "InternalError", "RequestTimeout":
      (code, text) = (.unreachable, "does not answer in time")
    default: return
    }
    self.code = code
    message = "\(address.origin) \(text) (\(found))."
  }
}
