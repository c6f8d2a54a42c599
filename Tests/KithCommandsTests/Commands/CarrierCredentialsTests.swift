import Foundation
import KithCarriers
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite struct CarrierCredentialsTests {
  @Test(arguments: [
    ("me\nsecret", "a user and a password"), ("me\nsecret\n", "a user and a password"),
    ("me\n\n", "a user and a password"), ("token", "a token"), ("token\n", "a token"),
    ("", "no credentials"),
  ])
  func `a file keeps the form that it has, also with an empty password`(
    file: String, form: String
  ) throws {
    let directory = try TestDirectory()
    let path = directory.child("credentials")
    try Data(file.utf8).write(to: URL(filePath: path))
    let options = try CarrierCredentialsOptions.parse(["--credentials-file", path])
    let address = try CarrierAddress(.webdav, "https://cloud.example/")
    let text = try #require(try options.text(for: address, Console()))
    #expect("\(try CarrierCredentials(parsing: Array(text.utf8), for: .webdav))" == form)
  }
}
