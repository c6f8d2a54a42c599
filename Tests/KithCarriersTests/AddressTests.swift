import Kith
import Testing

@testable import KithCarriers

struct AddressTests {
  @Test(arguments: [
    (CarrierAddress.Kind.folder, "/mnt/stick", "/mnt/stick"),
    (.folder, "//mnt///stick/", "/mnt/stick"),
    (.webdav, "https://Cloud.example/remote.php/dav/", "https://cloud.example/remote.php/dav"),
    (.webdav, "HTTPS://cloud.example", "https://cloud.example/"),
    (.webdav, "https://cloud.example:443/a", "https://cloud.example/a"),
    (.webdav, "http://127.0.0.1:8080/a%20b", "http://127.0.0.1:8080/a%20b"),
    (.webdav, "https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443/"),
    (.s3, "https://s3.example/bucket", "https://s3.example/bucket"),
    (
      .s3, "https://s3.example/bucket/a/b/?region=x&style=host",
      "https://s3.example/bucket/a/b?region=x&style=host"
    ),
  ])
  func locationsHaveANormalForm(
    _ kind: CarrierAddress.Kind, _ text: String, _ normal: String
  ) throws {
    let address = try CarrierAddress(kind, text)
    #expect(address.location == normal)
    #expect(try CarrierAddress(kind, normal) == address)
  }

  @Test(arguments: [
    (CarrierAddress.Kind.folder, "stick"), (.folder, ""), (.folder, "/"), (.folder, "/a/../b"),
    (.folder, "/a\u{0}b"), (.webdav, "ftp://x/"), (.webdav, "cloud.example/a"),
    (.webdav, "https://"),
    (.webdav, "https:///a"), (.webdav, "https://x.example/a?b=c"),
    (.webdav, "https://x.example/#a"),
    (.webdav, "https://x.example/a b"), (.webdav, "https://x.example/a/../b"),
    (.webdav, "https://x.example/%2e%2e/b"), (.webdav, "https://x.example/%zz"),
    (.webdav, "https://x.example:0/"), (.webdav, "https://x.example:65536/"),
    (.webdav, "https://x.example:+1/"), (.webdav, "https://127.1/"),
    (.webdav, "https://2130706433/"),
    (.webdav, "https://0x7f000001/"), (.webdav, "https://[::1/"), (.webdav, "https://::1/"),
    (.webdav, "https://[fe80::1%25eth0]/"), (.webdav, "https://localhost./"),
    (.webdav, "https://bücher.example/"), (.webdav, "https://x.example\\y.example/"),
    (.s3, "https://s3.example/"), (.s3, "https://s3.example/b/"), (.s3, "https://s3.example/Bü"),
    (.s3, "https://s3.example/bucket?region=a&region=b"),
    (.s3, "https://s3.example/bucket?style=x"),
    (.s3, "https://s3.example/bucket?acl=1"), (.s3, "https://s3.example/bucket/a%2Fb"),
  ])
  func otherTextIsRefused(_ kind: CarrierAddress.Kind, _ text: String) {
    let failure = #expect(throws: CarrierFailure.self) { try CarrierAddress(kind, text) }
    #expect(failure?.code == .unexpected)
    #expect(
      failure.map { $0.message.contains("password") || $0.message.contains("bytes") } == false)
  }

  @Test func passwordsInURLsAreRefusedAndNotRepeated() throws {
    let failure = try #require(throws: CarrierFailure.self) {
      try CarrierAddress(.webdav, "https://me:hunter2@cloud.example/")
    }
    #expect(failure.code == .unexpected)
    #expect(!failure.message.contains("hunter2"))
    #expect(failure.message.contains("file"))
  }

  @Test func longTextIsRefused() {
    let text = "https://x.example/" + String(repeating: "a", count: 3_000)
    let failure = #expect(throws: CarrierFailure.self) { try CarrierAddress(.webdav, text) }
    #expect(failure?.code == .unexpected)
    #expect(failure?.message.contains("at most") == true)
  }

  @Test(arguments: [
    ("http://nas.example/", CarrierAddress.Kind.webdav, true),
    ("http://192.168.1.2/", .webdav, true),
    ("https://nas.example/", .webdav, false), ("http://127.0.0.1/", .webdav, false),
    ("http://localhost/", .webdav, false), ("http://nas.example/bucket", .s3, false),
  ])
  func whereAPasswordGoesAsADigest(
    _ text: String, _ kind: CarrierAddress.Kind, _ isDigest: Bool
  ) throws {
    #expect(try CarrierAddress(kind, text).givesAwayDigest == isDigest)
  }

  private static let isLocal = "on this computer or link"

  @Test(arguments: [
    ("https://cloud.example/", nil), ("https://192.168.1.2/", nil), ("https://[2001:db8::1]/", nil),
    ("http://cloud.example/", "begins with https"),
    ("https://localhost/", Self.isLocal), ("https://a.localhost/", Self.isLocal),
    ("https://nas.local/", Self.isLocal),
    ("https://nas/", Self.isLocal), ("https://127.0.0.1/", Self.isLocal),
    ("https://127.8.9.1/", Self.isLocal),
    ("https://0.0.0.0/", Self.isLocal), ("https://169.254.1.1/", Self.isLocal),
    ("https://224.0.0.1/", Self.isLocal),
    ("https://255.255.255.255/", Self.isLocal), ("https://[::1]/", Self.isLocal),
    ("https://[::]/", Self.isLocal),
    ("https://[fe80::1]/", Self.isLocal), ("https://[febf::1]/", Self.isLocal),
    ("https://[ff02::1]/", Self.isLocal),
    ("https://[::ffff:127.0.0.1]/", Self.isLocal), ("https://[::127.0.0.1]/", Self.isLocal),
    ("https://[64:ff9b::7f00:1]/", Self.isLocal), ("https://[::ffff:192.168.1.2]/", nil),
  ])
  func addressesOfOtherDevicesMayNotLeadHere(
    _ text: String, _ reason: String?
  ) throws {
    let address = try CarrierAddress(.webdav, text)
    let refusal = address.refusalFromAccount
    #expect((refusal == nil) == (reason == nil))
    if let refusal, let reason {
      #expect(refusal.code == .untrusted)
      #expect(refusal.message.contains(reason))
    }
  }

  @Test func foldersOfOtherDevicesAreRefused() throws {
    let refusal = try CarrierAddress(.folder, "/a").refusalFromAccount
    #expect(refusal?.code == .untrusted)
    #expect(refusal?.message.contains("folder") == true)
  }

  @Test(arguments: [
    ("https://s3.eu-central-1.amazonaws.com/bucket", "eu-central-1"),
    ("https://s3.amazonaws.com/bucket", "us-east-1"),
    ("https://s3.example/bucket", "us-east-1"),
    ("https://s3.eu-west-3.amazonaws.com/bucket?region=mars", "mars"),
  ])
  func regionsComeFromTheAddress(_ text: String, _ region: String) throws {
    #expect(try CarrierAddress(.s3, text).bucket?.region == region)
  }

  @Test func partsOfABucketsAddress() throws {
    let bucket = try #require(
      CarrierAddress(.s3, "http://10.0.0.1:9000/my.bucket/a%20b/c?style=host").bucket)
    #expect(bucket.bucket == "my.bucket")
    #expect(bucket.prefix == "a b/c/")
    #expect(bucket.style == .host)
    #expect(bucket.endpoint.text == "http://10.0.0.1:9000/")
  }
}

struct CredentialsTests {
  private func parse(
    _ text: String, _ kind: CarrierAddress.Kind
  ) throws -> CarrierCredentials {
    try CarrierCredentials(parsing: Array(text.utf8), for: kind)
  }

  @Test func filesHaveOneOrTwoLines() throws {
    guard case .password("me", let password) = try parse("me\r\nopen sesame\r\n", .webdav) else {
      Issue.record("no password")
      return
    }
    #expect(password.withUnsafeBytes { Array($0) } == Array("open sesame".utf8))
    guard case .bearer(let token) = try parse("abc", .webdav) else {
      Issue.record("no token")
      return
    }
    #expect(token.withCString { String(cString: $0) } == "abc")
    guard case .s3("AKIA", _) = try parse("AKIA\nsecret\n", .s3) else {
      Issue.record("no access key")
      return
    }
    guard case .none = try parse("", .folder) else {
      Issue.record("not none")
      return
    }
  }

  @Test(arguments: [
    ("a\nb\nc", CarrierAddress.Kind.webdav), ("a", .s3), ("a", .folder), ("\nb", .webdav),
    ("a\u{1}\nb", .webdav), (String(repeating: "a", count: 9_000), .webdav),
  ])
  func otherFilesAreRefused(_ text: String, _ kind: CarrierAddress.Kind) {
    let failure = #expect(throws: CarrierFailure.self) { try parse(text, kind) }
    #expect(failure.map { !"\($0)".contains("aaaa") } == true)
  }

  @Test func secretsNeverShow() throws {
    for value in [try parse("me\nhunter2", .webdav), try parse("hunter2", .webdav)] {
      var dumped = ""
      dump(value, to: &dumped)
      let shown = "\(value) \(String(reflecting: value)) \(dumped)"
      #expect(!shown.contains("hunter2"))
      #expect(!shown.contains("\(Int(UInt8(ascii: "h"))), \(Int(UInt8(ascii: "u")))"))
    }
  }

  @Test func credentialsFitTheirKind() throws {
    let folder = try CarrierAddress(.folder, "/a")
    let plain = try CarrierAddress(.webdav, "http://cloud.example/")
    let bucket = try CarrierAddress(.s3, "https://s3.example/bucket")
    for (address, text, kind) in [
      (folder, "a\nb", CarrierAddress.Kind.webdav), (bucket, "a", .webdav), (plain, "a", .webdav),
      (plain, "a\nb", .s3),
    ] {
      let credentials = try parse(text, kind)
      let failure = #expect(throws: CarrierFailure.self) {
        try storage(at: address, credentials: credentials)
      }
      #expect(failure?.code == .denied)
    }
  }

  @Test func anAddressFromTheAccountIsCheckedAgain() throws {
    let failure = #expect(throws: CarrierFailure.self) {
      try storage(
        at: CarrierAddress(.webdav, "https://localhost/"), credentials: .none,
        options: CarrierOptions(allowsLocal: false))
    }
    #expect(failure?.code == .untrusted)
  }
}
