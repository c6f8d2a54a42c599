import Kith
import Testing

@testable import KithCarriers

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
