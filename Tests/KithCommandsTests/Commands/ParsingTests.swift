import Foundation
import Kith
import KithTerminal
import Testing

@testable import KithCommands

@Suite("The command line")
struct ParsingTests {
  private func command<Command>(_ line: String, as type: Command.Type = Command.self) throws
    -> Command
  {
    let command = try KithCommand.parseAsRoot(line.split(separator: " ").map(String.init))
    return try #require(command as? Command)
  }

  private func status(_ arguments: [String]) -> Int32 {
    do {
      _ = try KithCommand.parseAsRoot(arguments)
      return 0
    } catch {
      return KithTool.ending(of: error).status
    }
  }

  @Test func `set takes pairs, and values that begin with a dash`() throws {
    let set: SetCommand = try command("set a 1 b -5 --json")
    #expect(set.pairs == ["a", "1", "b", "-5"] && set.options.json)
    let typed: SetCommand = try command("set --type string --store s version 1.10")
    #expect(typed.type == .string && typed.store.store.store == "s" && !typed.store.create)
    #expect(typed.pairs == ["version", "1.10"])
    for (line, pairs) in [
      ("set -- x -1", ["x", "-1"]), ("set x -- -1", ["x", "-1"]), ("set -- -k v", ["-k", "v"]),
      ("set a 1 -- --type --json", ["a", "1", "--type", "--json"]),
      ("set -- -- --", ["--", "--"]),
    ] {
      let set: SetCommand = try command(line)
      #expect(set.pairs == pairs, "\(line)")
    }
    #expect(status(["set", "a"]) == 64)
    #expect(status(["set", "--", "a"]) == 64)
    for twice in ["set a 1 a 2", "set a 1 b 2 -- a 3", "set -- a 1 a 1"] {
      #expect(status(twice.split(separator: " ").map(String.init)) == 64, "\(twice)")
    }
    // Unicode calls them equivalent, and they are two keys.
    #expect(status(["set", "\u{E9}", "1", "e\u{301}", "2"]) == 0)
    #expect(status(["set", "a", "-", "b", "-"]) == 64)
    #expect(status(["set", "a", "1", "--typ", "string"]) == 64)
    #expect(status(["set", "--type", "colour", "a", "b"]) == 64)
  }

  /// A script's variable that was never set.
  @Test(arguments: [
    ["ls", "--directory", ""], ["ls", "--passphrase-file", ""], ["stores", "rm", ""],
    ["devices", "rename", "", "x"], ["devices", "rename", "x", ""], ["devices", "meet", ""],
    ["devices", "forget", ""], ["account", "create", "--name", ""], ["run", "--peer", ""],
    ["carrier", "add", "folder", ""], ["carrier", "add", "s3", ""],
  ])
  func `an empty name or place is no command line`(arguments: [String]) {
    #expect(status(arguments) == 64)
  }

  @Test func `common options stand before or after`() throws {
    let list: ListCommand = try command("ls -l editor. --directory /tmp/x --json -q")
    #expect(list.long && list.prefix == "editor." && list.options.json && list.options.quiet)
    #expect(list.options.directoryURL.path == "/tmp/x")
    let largest: ListCommand = try command("ls -lS")
    #expect(largest.long && largest.bySize)
  }

  @Test func `the directory comes from the option, then the environment`() {
    func path(_ option: String?, _ environment: [String: String]) -> String {
      CommonOptions.directory(option: option, environment: environment).path
    }
    #expect(path("/a", ["KITH_DIRECTORY": "/b"]) == "/a")
    #expect(path(nil, ["KITH_DIRECTORY": "/b", "XDG_DATA_HOME": "/c"]) == "/b")
    #expect(path(nil, ["KITH_DIRECTORY": "", "XDG_DATA_HOME": "/c", "HOME": "/h"]) == "/c/kith")
    #expect(path(nil, ["XDG_DATA_HOME": "c", "HOME": "/h"]) == "/h/.local/share/kith")
    #expect(path(nil, ["HOME": "/h"]) == "/h/.local/share/kith")
  }

  @Test func `a directory is what was written, not a home`() throws {
    #expect(status(["ls", "--directory", ""]) == 64)
    #expect(status(["account", "recover", "--from", ""]) == 64)
    let here = FileManager.default.currentDirectoryPath
    let tilde = CommonOptions.directory(option: "~/x", environment: [:])
    #expect(tilde.path == here + "/~/x")
    #expect(CommonOptions.directory(option: "x", environment: [:]).path == here + "/x")
  }

  @Test func `numbers and addresses that cannot be meant`() {
    #expect(status(["sync", "--devices=-3"]) == 64)
    #expect(status(["sync", "--timeout", "3601"]) == 64)
    for (line, said) in [
      (["sync", "--timeout", "-1"], "0 to 3600 seconds"),
      (["sync", "--devices", "-1"], "0 or more"),
      (["run", "--port", "99999"], "is invalid for"), (["run", "--port", "-1"], "is invalid for"),
      (["doctor", "--port", "65536"], "is invalid for"),
    ] {
      #expect(throws: (any Error).self) {
        do { _ = try KithCommand.parseAsRoot(line) } catch {
          let (status, text) = KithTool.ending(of: error)
          #expect(status == 64 && text?.contains(said) == true, "\(line): \(text ?? "")")
          throw error
        }
      }
    }
    #expect(status(["sync", "--devices", "0", "--timeout", "3600"]) == 0)
    for peer in ["host:99999", "", "a b", "::1", "[::1"] {
      #expect(status(["run", "--peer", peer]) == 64, "\(peer)")
      #expect(status(["join", "token", "--peer", peer]) == 64, "\(peer)")
    }
    #expect(status(["run", "--peer", "host.example:4114", "--peer", "[::1]:1"]) == 0)
    for (count, expected) in [(256, Int32(0)), (257, 64)] {
      let peers = (1...count).flatMap { ["--peer", "host.example:\($0)"] }
      #expect(status(["run"] + peers) == expected)
    }
  }

  @Test func `history and undo name a key, a number, or none`() throws {
    let all: HistoryCommand = try command("history")
    #expect(all.key == nil && all.limit == 20)
    let one: HistoryCommand = try command("history theme --limit 0 --store s")
    #expect(one.key == "theme" && one.limit == 0 && one.store.store == "s")
    let undo: UndoCommand = try command("undo theme --to 7")
    #expect(undo.key == "theme" && undo.to == 7)
    #expect(status(["undo"]) == 64 && status(["undo", "k", "--to", "-1"]) == 64)
    #expect(status(["history", "--limit", "-1"]) == 64)
    for (line, setting) in [
      ("run", nil), ("run --history", true), ("run --no-history", false),
    ] as [(String, Bool?)] {
      let run: RunCommand = try command(line)
      #expect(run.history == setting, "\(line)")
    }
  }

  @Test func `arguments that are not UTF-8 are refused`() throws {
    func check(_ arguments: [[UInt8]]) throws {
      var pointers = arguments.map { bytes in strdup(bytes.map { CChar(bitPattern: $0) } + [0]) }
      defer { for pointer in pointers { free(pointer) } }
      try KithTool.checkArguments(&pointers, Int32(pointers.count))
    }
    try check([Array("kith".utf8), Array("é".utf8)])
    let error = #expect(throws: CommandFailure.self) { try check([Array("kith".utf8), [0xE9]]) }
    #expect(error?.status == .usage)
  }

  @Test func `the store comes from the option, then the environment`() throws {
    let environment = ["KITH_STORE_IDENTIFIER": "com.example.A"]
    #expect(try StoreOptions.identifier(option: nil, environment: [:]).rawValue == "default")
    #expect(
      try StoreOptions.identifier(option: nil, environment: environment).rawValue == "com.example.A"
    )
    #expect(try StoreOptions.identifier(option: "b", environment: environment).rawValue == "b")
    let option = #expect(throws: CommandFailure.self) {
      try StoreOptions.identifier(option: "", environment: environment)
    }
    #expect(option?.message?.hasPrefix("--store: ") == true)
    let variable = #expect(throws: CommandFailure.self) {
      try StoreOptions.identifier(option: nil, environment: ["KITH_STORE_IDENTIFIER": "a\n"])
    }
    #expect(variable?.message?.hasPrefix("KITH_STORE_IDENTIFIER: ") == true)
  }

  @Test(
    arguments: [
      ([], nil, ["::"], 4_114), ([], 0, ["::"], 0), (["127.0.0.1"], nil, ["127.0.0.1"], 4_114),
      (["127.0.0.1:0", "[::1]:0"], nil, ["127.0.0.1", "::1"], 0), (["::1"], 5, ["::1"], 5),
      (["name:7"], 7, ["name"], 7),
    ] as [(texts: [String], port: UInt16?, hosts: [String], result: UInt16)])
  func `addresses to listen on`(
    texts: [String], port: UInt16?, hosts: [String], result: UInt16
  ) throws {
    let plan = try ListenPlan(texts, port: port)
    #expect(plan.hosts == hosts && plan.port == result)
  }

  @Test(
    arguments: [
      "", ":5", "[::1", "[::1]x", "1.2.3.4:99999", "1.2.3.4:", "1.2.3.4:+4114", "1.2.3.4: 4114",
      "[::1]:+4114",
    ])
  func `no address to listen on`(text: String) {
    #expect(throws: CommandFailure.self) { try ListenPlan([text], port: nil) }
  }

  @Test func `a port is a number without a sign`() {
    #expect(PortNumber(argument: "4114")?.number == 4_114)
    #expect(PortNumber(argument: "0")?.number == 0)
    for text in ["", "+4114", "-1", " 4114", "4114 ", "65536", "٤"] {
      #expect(PortNumber(argument: text) == nil, "\(text)")
    }
  }

  @Test func `two ports are one too many`() {
    #expect(throws: CommandFailure.self) { try ListenPlan(["a:1", "b:2"], port: nil) }
    #expect(throws: CommandFailure.self) { try ListenPlan(["a:1"], port: 2) }
  }

  @Test func `help and version are no errors`() {
    #expect(status(["--help"]) == 0)
    #expect(status(["--version"]) == 0)
    #expect(status(["help", "set"]) == 0)
    #expect(status(["nonsense"]) == 64)
  }

  @Test(arguments: ["bash", "zsh", "fish"])
  func `completions name every command`(shell: String) throws {
    let error = #expect(throws: (any Error).self) {
      _ = try KithCommand.parseAsRoot(["--generate-completion-script", shell])
    }
    guard case (0, let script?) = KithTool.ending(of: try #require(error)) else {
      Issue.record("there is no script for \(shell)")
      return
    }
    for name in ["account", "invite", "unshown", "doctor"] { #expect(script.contains(name)) }
    if shell == "zsh" {
      #expect(script.contains("The device'\\''s directory; see kith --help.]:path:_files -/"))
      #expect(script.contains(":file:_files'"))
    }
  }
}

@Suite("Names of devices")
struct DeviceNameTests {
  @Test(arguments: [" ", "\u{A0}", "\u{2800} ", "\u{3000}"])
  func `a name that nobody sees is refused`(name: String) {
    #expect(throws: KithError.self) { try DeviceName.check(name) }
    #expect(throws: (any Error).self) {
      try KithCommand.parseAsRoot(["account", "create", "--name", name])
    }
  }

  @Test func `others are taken`() throws {
    for name in ["a", "my desk", "日本", "a\u{A0}b"] { try DeviceName.check(name) }
  }
}

@Suite("Lines of a batch")
struct BatchLinesTests {
  @Test func `no keys to watch are not all keys`() throws {
    let all = try BatchRequest(Array(#"{"do": "watch"}"#.utf8)).action()
    guard case .watch(let keys) = all else {
      Issue.record("\(all)")
      return
    }
    #expect(keys.isEmpty)
    #expect(throws: CommandFailure.self) {
      try BatchRequest(Array(#"{"do": "watch", "keys": []}"#.utf8)).action()
    }
  }

  @Test func `a key that is removed twice is one`() throws {
    for line in [
      #"{"do": "remove", "keys": ["a", "b", "a"]}"#,
      #"{"do": "transaction", "remove": ["a", "b", "a"]}"#,
    ] {
      switch try BatchRequest(Array(line.utf8)).action() {
      case .remove(let keys): #expect(keys == ["a", "b"])
      case .write(let writes): #expect(writes.map(\.key) == ["a", "b"])
      case let other: Issue.record("\(other)")
      }
    }
  }

  @Test func `come whole, however they arrive`() {
    var lines = BatchLines()
    #expect(lines.take(Array("a".utf8)) == [])
    #expect(lines.take(Array("b\n\nc\nd".utf8)) == [Array("ab".utf8), [], Array("c".utf8)])
    #expect(lines.end() == Array("d".utf8))
    #expect(lines.end() == [])
  }

  @Test func `beyond the limit are dropped, and the next one is read`() {
    let full = [UInt8](repeating: UInt8(ascii: "x"), count: BatchLines.limit)
    var lines = BatchLines()
    #expect(lines.take(full + [UInt8(ascii: "\n")]) == [full])
    #expect(lines.take(full) == [])
    #expect(lines.take(Array("x".utf8)) == [])
    #expect(lines.take(Array("xx\nab\n".utf8)) == [nil, Array("ab".utf8)])
    #expect(lines.take(full + full) == [])
    #expect(lines.end() == nil)
  }
}
