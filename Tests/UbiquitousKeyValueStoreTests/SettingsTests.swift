import Foundation
import Kith
import Testing

@testable import UbiquitousKeyValueStore

/// The choice of a program's store, made without looking at the machine.
@Suite struct SettingsTests {
  private func settings(
    code: (identifier: String?, directory: String?)? = nil, environment: [String: String] = [:],
    file: String? = nil, executable: String = "/opt/notes/bin/Notes"
  ) -> Settings {
    let sources = SettingSources(
      environment: environment, file: file.map { Data($0.utf8) }, executable: executable,
      home: "/home/ada")
    return Settings(
      resolving: sources, storeIdentifier: code?.identifier.flatMap { StoreIdentifier($0) },
      directory: code?.directory)
  }

  @Test func `code wins over the environment, the environment over the file`() {
    let environment = ["KITH_STORE_IDENTIFIER": "env", "KITH_DIRECTORY": "/env"]
    let file = #"{"storeIdentifier": "file", "directory": "/file"}"#
    let all = settings(code: ("code", "/code"), environment: environment, file: file)
    #expect(all.storeIdentifier.rawValue == "code")
    #expect(all.accounts.directory == "/code")
    let two = settings(environment: environment, file: file)
    #expect(two.storeIdentifier.rawValue == "env")
    #expect(two.accounts.directory == "/env")
    let one = settings(file: file)
    #expect(one.storeIdentifier.rawValue == "file")
    #expect(one.accounts.directory == "/file")
    for settings in [all, two, one] {
      #expect(settings.isConfigured)
      #expect(settings.warnings.isEmpty)
    }
  }

  @Test func `each setting is taken from where it is said first`() {
    let settings = settings(
      code: ("code", nil), environment: ["KITH_STORE_IDENTIFIER": "", "KITH_DIRECTORY": "/env"],
      file:
        #"{"hosts": ["::1"], "port": 4115, "peers": ["192.0.2.1:4114"], "#
        + #""discoversPeers": false, "keepsHistory": false}"#)
    #expect(settings.accounts.discoversPeers == false)
    #expect(settings.accounts.keepsHistory == false)
    #expect(settings.storeIdentifier.rawValue == "code")
    #expect(settings.accounts.directory == "/env")
    #expect(settings.accounts.hosts == ["::1"])
    #expect(settings.accounts.port == 4115)
    #expect(settings.accounts.peers == ["192.0.2.1:4114"])
  }

  @Test func `the passphrase is where the environment says, or else the file`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    func file(_ name: String) throws -> (path: String, passphrase: Passphrase) {
      let path = folder.appending(path: name).path
      var bytes = Array(name.utf8)
      #expect(
        FileManager.default.createFile(
          atPath: path, contents: Data(bytes), attributes: [.posixPermissions: 0o400]))
      return (path, Passphrase(zeroing: &bytes))
    }
    let (environment, beside) = (try file("environment"), try file("beside"))
    #expect(settings(file: "{}").accounts.passphrase == nil)
    let json = #"{"passphraseFile": "\#(beside.path)"}"#
    let both = settings(environment: ["KITH_PASSPHRASE_FILE": environment.path], file: json)
    #expect(try both.accounts.passphrase?().isSame(as: environment.passphrase) == true)
    let one = settings(file: json)
    #expect(try one.accounts.passphrase?().isSame(as: beside.passphrase) == true)
  }

  @Test func `without a directory it is the one that all programs of the user share`() {
    let environment = ["KITH_STORE_IDENTIFIER": "env"]
    #expect(settings(environment: environment).accounts.directory == "/home/ada/.local/share/kith")
    for (home, expected) in [
      ("/data", "/data/kith"), ("relative", "/home/ada/.local/share/kith"),
      ("", "/home/ada/.local/share/kith"),
    ] {
      let environment = environment.merging(["XDG_DATA_HOME": home]) { $1 }
      #expect(settings(environment: environment).accounts.directory == expected)
    }
  }

  @Test func `without an identifier the program gets a store of its own, and one warning`() throws {
    let settings = settings()
    #expect(!settings.isConfigured)
    #expect(settings.storeIdentifier.rawValue == "Notes")
    #expect(settings.accounts.directory == "/home/ada/.local/share/Notes/kith")
    #expect(settings.warnings.count == 1)
    let warning = try #require(settings.warnings.first)
    for part in [
      #"UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")"#,
      "KITH_STORE_IDENTIFIER=com.example.Bookmarks",
      #"{"storeIdentifier": "com.example.Bookmarks"}"#, "/opt/notes/bin/kith.json",
      "/home/ada/.local/share/Notes/kith",
    ] {
      #expect(warning.contains(part), "\(part)")
    }
  }

  @Test func `a directory alone names no store`() {
    let settings = settings(environment: ["KITH_DIRECTORY": "/env"])
    #expect(!settings.isConfigured)
    #expect(settings.accounts.directory == "/env")
    // That directory may have an account, so the store is not said to stay on this device.
    #expect(settings.warnings.count == 1)
    #expect(settings.warnings[0].contains("one of its own, Notes in /env, and"))
    #expect(!settings.warnings[0].contains("this device"))
  }

  @Test func `the program's name serves even where it is odd`() {
    #expect(settings(executable: "/a\nb").storeIdentifier.rawValue == "program")
    #expect(settings(executable: "").storeIdentifier.rawValue == "program")
    #expect(settings(executable: "/tool").warnings[0].contains(" /kith.json"))
  }

  @Test func `an identifier that is none is said, and the next one is taken`() {
    let settings = settings(
      environment: ["KITH_STORE_IDENTIFIER": "a\u{7}b"], file: #"{"storeIdentifier": "file"}"#)
    #expect(settings.storeIdentifier.rawValue == "file")
    #expect(settings.warnings.count == 1)
    #expect(settings.warnings[0].contains("KITH_STORE_IDENTIFIER is ignored"))
  }

  @Test(arguments: [
    ("", "it is no JSON object"), ("[]", "it is no JSON object"), ("{", "it is no JSON object"),
    ("null", "it is no JSON object"),
    (#"{"storeIdentifier": 1}"#, #""storeIdentifier" is no text, or empty"#),
    (#"{"storeIdentifier": ""}"#, #""storeIdentifier" is no text, or empty"#),
    (#"{"storeIdentifier": "a\u0007"}"#, #""storeIdentifier" is no text of 1 to 255 bytes"#),
    (#"{"storeIdentifier": "a", "port": 65536}"#, #""port" is no number from 0 to 65535"#),
    (#"{"storeIdentifier": "a", "port": true}"#, #""port" is no number from 0 to 65535"#),
    (#"{"storeIdentifier": "a", "peers": "b"}"#, #""peers" is no list of texts"#),
    (
      #"{"storeIdentifier": "a", "discoversPeers": 1}"#,
      #""discoversPeers" is neither true nor false"#
    ),
    (#"{"storeIdentifier": "a", "hosts": [1]}"#, #""hosts" is no text, or empty"#),
    (#"{"storeIdentifier": "a", "dirctory": "/b"}"#, #""dirctory" means nothing"#),
    (#"{"storeIdentifier": null}"#, "it is no JSON object"),
    (
      #"{"directory": ""# + String(repeating: "n", count: 65_536) + #""}"#,
      "it has more than 65536 bytes"
    ),
  ])
  func `a malformed file is ignored whole, and a warning says what to write`(
    _ text: String, _ reason: String
  ) {
    let settings = settings(environment: ["KITH_STORE_IDENTIFIER": "env"], file: text)
    #expect(settings.storeIdentifier.rawValue == "env")
    #expect(settings.accounts.directory == "/home/ada/.local/share/kith")
    #expect(settings.warnings.count == 1)
    #expect(
      settings.warnings[0].hasPrefix("/opt/notes/bin/kith.json is ignored: \(reason)"),
      "\(settings.warnings)")
    #expect(settings.warnings[0].contains(#"{"storeIdentifier": "com.example.Bookmarks"}"#))
  }

  @Test func `the file's directory may be relative to it, or to the home`() {
    for (text, expected) in [
      ("/a", "/a"), ("data", "/opt/notes/bin/data"), ("~/data", "/home/ada/data"),
      ("~data", "/opt/notes/bin/~data"),
    ] {
      let file = #"{"storeIdentifier": "a", "directory": "\#(text)"}"#
      #expect(settings(file: file).accounts.directory == expected)
    }
  }

  @Test func `settings in code are checked at once`() {
    let configuration = ProgramConfiguration()
    func code(
      _ identifier: String? = nil, policy: KeyValueStore.Policy = .standard
    ) -> KithError.Code? {
      do throws(KithError) {
        try configuration.configure(storeIdentifier: identifier, policy: policy)
        return nil
      } catch {
        return error.code
      }
    }
    var negative = KeyValueStore.Policy.standard
    negative.keys = -1
    #expect(code("") == .invalidStoreIdentifier)
    #expect(code(policy: negative) == .invalidPolicy)
    #expect(!configuration.isConfigured)
    #expect(code("com.example.Editor") == nil)
    #expect(configuration.isConfigured)
    // The last call before the first use counts.
    #expect(code() == nil)
    #expect(!configuration.isConfigured)
  }
}
