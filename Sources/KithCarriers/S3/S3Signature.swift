import CSodium
import FoundationEssentials

/// Signature version 4 of Amazon Web Services, with a hash of the body.
struct S3Signature {
  var accessKey: String
  var secretKey: SecretText
  var region: String
  var service = "s3"

  /// The header `Authorization` of a request, which signs all given headers, among them `host` and
  /// `x-amz-date`; their names are in small letters. The path is percent-encoded once, the query not.
  /// `bodyHash` is SHA-256 in hex.
  func authorization(
    method: String, path: String, query: [(name: String, value: String)],
    headers: [(name: String, value: String)], bodyHash: String, date: String
  ) -> String {
    let headers = headers.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    let signed = headers.map(\.name).joined(separator: ";")
    let request = [
      method, path, Self.encoded(query),
      headers.map { "\($0.name):\(Self.trimmed($0.value))\n" }.joined(), signed, bodyHash,
    ].joined(separator: "\n")
    let day = String(date.prefix(8))
    let scope = "\(day)/\(region)/\(service)/aws4_request"
    let text = [
      "AWS4-HMAC-SHA256", date, scope, S3Digest.hex(S3Digest.sha256(Array(request.utf8))),
    ].joined(separator: "\n")
    return "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), SignedHeaders=\(signed), "
      + "Signature=\(S3Digest.hex(signature(of: text, day)))"
  }

  /// A query as it is signed and sent: sorted by name and then value.
  static func encoded(_ query: [(name: String, value: String)]) -> String {
    query.map { (PercentCoding.encode($0.name), PercentCoding.encode($0.value)) }
      .sorted { one, other in
        one.0 == other.0
          ? one.1.utf8.lexicographicallyPrecedes(other.1.utf8)
          : one.0.utf8.lexicographicallyPrecedes(other.0.utf8)
      }
      .map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// A time as `20130524T000000Z`, from seconds since 1970.
  static func date(_ seconds: Int) -> String {
    Date(timeIntervalSince1970: Double(seconds)).formatted(
      Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
  }

  private func signature(of text: String, _ day: String) -> [UInt8] {
    var key = SecretText("AWS4", before: secretKey).withUnsafeBytes { S3Digest.hmac(key: $0, day) }
    // Keys that follow from the secret are overwritten as well.
    for part in [region, service, "aws4_request", text] {
      let next = key.withUnsafeBytes { S3Digest.hmac(key: $0, part) }
      key.withUnsafeMutableBytes { sodium_memzero($0.baseAddress, $0.count) }
      key = next
    }
    return key
  }

  /// Without space at the ends, and with one space for several.
  private static func trimmed(_ value: String) -> String {
    value.split(separator: " ").joined(separator: " ")
  }
}

/// SHA-256 and HMAC-SHA-256 of libsodium.
enum S3Digest {
  static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
    crypto_hash_sha256(&digest, bytes, UInt64(bytes.count))
    return digest
  }

  static func hmac(key: UnsafeRawBufferPointer, _ text: String) -> [UInt8] {
    var state = crypto_auth_hmacsha256_state()
    var digest = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    let message = Array(text.utf8)
    // It holds what follows from the key.
    defer { sodium_memzero(&state, MemoryLayout.size(ofValue: state)) }
    guard let start = key.baseAddress else { preconditionFailure("no key is empty") }
    crypto_auth_hmacsha256_init(&state, start.assumingMemoryBound(to: UInt8.self), key.count)
    crypto_auth_hmacsha256_update(&state, message, UInt64(message.count))
    crypto_auth_hmacsha256_final(&state, &digest)
    return digest
  }

  static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
