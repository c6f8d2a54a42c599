import Kith

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
