import Testing

@testable import KithCarriers

/// The examples of “Authenticating Requests: Using the Authorization Header” in Amazon's S3 API
/// reference.
struct SignatureTests {
  private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  private static let date = "20130524T000000Z"

  private let signature = S3Signature(
    accessKey: "AKIAIOSFODNN7EXAMPLE",
    secretKey: SecretText(Array("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".utf8)),
    region: "us-east-1")

  private func sign(
    _ method: String, _ path: String, query: [(name: String, value: String)] = [],
    headers: [(name: String, value: String)] = [], bodyHash: String = empty
  ) -> Substring? {
    signature.authorization(
      method: method, path: path, query: query,
      headers: headers + [
        ("x-amz-date", Self.date), ("host", "examplebucket.s3.amazonaws.com"),
        ("x-amz-content-sha256", bodyHash),
      ], bodyHash: bodyHash, date: Self.date
    ).split(separator: "Signature=").last
  }

  @Test func getObject() {
    #expect(
      sign("GET", "/test.txt", headers: [("range", "bytes=0-9")])
        == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
  }

  @Test func putObject() {
    let hash = S3Digest.hex(S3Digest.sha256(Array("Welcome to Amazon S3.".utf8)))
    #expect(hash == "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
    #expect(
      sign(
        "PUT", "/" + PercentCoding.encode("test$file.text", keepsSlash: true),
        headers: [
          ("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ], bodyHash: hash)
        == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
  }

  @Test func getBucketLifecycle() {
    #expect(
      sign("GET", "/", query: [("lifecycle", "")])
        == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
  }

  @Test func listObjects() {
    #expect(
      sign("GET", "/", query: [("prefix", "J"), ("max-keys", "2")])
        == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
  }

  @Test func aTextBeforeASecret() {
    let line = SecretText("Authorization: Bearer ", before: SecretText(Array("tökén".utf8)))
    #expect(line.withCString { String(cString: $0) } == "Authorization: Bearer tökén")
    #expect(SecretText("", before: SecretText([])).withUnsafeBytes(\.isEmpty))
  }

  @Test func theWholeHeader() {
    let header = signature.authorization(
      method: "GET", path: "/", query: [], headers: [("x-amz-date", "d"), ("host", "h")],
      bodyHash: Self.empty, date: Self.date)
    #expect(
      header.hasPrefix(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
          + "SignedHeaders=host;x-amz-date, Signature="))
  }

  @Test(arguments: [
    (0, "19700101T000000Z"), (1_369_353_600, "20130524T000000Z"), (951_782_399, "20000228T235959Z"),
    (951_827_696, "20000229T123456Z"),
  ])
  func dates(_ seconds: Int, _ text: String) {
    #expect(S3Signature.date(seconds) == text)
  }

  @Test func queriesAreEncodedAndSorted() {
    let query = S3Signature.encoded([("prefix", "a b/ü+"), ("list-type", "2"), ("a", "~-._")])
    #expect(query == "a=~-._&list-type=2&prefix=a%20b%2F%C3%BC%2B")
  }
}
