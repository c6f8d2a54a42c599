import Foundation
import Glibc
import KithCore
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("A batch of requests", .timeLimit(.minutes(5)))
struct BatchTests {
  private static let greeting =
    #"{"format":"kith batch","software":"\#(Software.version)","store":"default","version":1}"#

  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map(String.init)
  }

  @Test func `is answered alike with and without a node`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let requests = """
      {"id": 1, "do": "set", "key": "theme", "value": "dark"}
      {"id": "b", "do": "get", "key": "theme"}

      {"do": "get", "key": "none"}
      {"id": 3, "do": "transaction", "set": {"a": 1, "b": [1.5, true]}, "remove": ["theme"]}
      {"id": 4, "do": "remove", "keys": ["a", "none"]}
      {"id": 5, "do": "list", "prefix": "b"}
      {"id": 6, "do": "list", "prefix": "x"}
      {"id": 7, "do": "sync", "timeout": 0}
      {"id": 8, "do": "status"}
      """
    let bytes = try EncodedValue([1.5, true]).size
    let missing =
      #"{"error":{"code":"notFound","message":"\"none\" is missing in the store "#
      + #"\"default\"","status":2},"version":1}"#
    let listed =
      #"{"entries":[{"bytes":\#(bytes),"key":"b","type":"array","value":[1.5,true]}],"#
      + #""id":5,"store":"default","version":1}"#
    let expected: [String] = [
      Self.greeting,
      #"{"id":1,"removed":[],"set":["theme"],"version":1}"#,
      #"{"id":"b","key":"theme","type":"string","value":"dark","version":1}"#,
      missing,
      #"{"id":3,"removed":["theme"],"set":["a","b"],"version":1}"#,
      #"{"id":4,"missing":["none"],"removed":["a"],"version":1}"#,
      listed,
      #"{"entries":[],"id":6,"store":"default","version":1}"#,
    ]
    for hasNode in [false, true] {
      if hasNode { try await household.start(member) }
      let result = try await household.run(member, "batch", input: Data(requests.utf8))
      #expect(result.status == 0 && result.talk.isEmpty, "\(result)")
      let lines = Self.lines(result.output)
      #expect(Array(lines.prefix(8)) == expected)
      // The last two come once they are known.
      #expect(lines.count == 10, "\(result.output)")
      #expect(
        lines.contains { $0.hasPrefix(#"{"carriers":[],"complete":[],"id":7,"incomplete":[],"#) })
      #expect(lines.contains { $0.contains(#""id":8,"#) && $0.contains(#""stores":["#) })
      #expect(try await household.run(member, "ls").output == "b\n")
    }
  }

  @Test func `goes on after bad lines`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let bad: [(line: String, id: String?, code: String)] = [
      ("nonsense", nil, "usage"), ("[1]", nil, "usage"),
      (#"{"id": 1, "do": "fly"}"#, "1", "usage"),
      (#"{"id": 2, "do": "get"}"#, "2", "usage"),
      (#"{"id": 3, "do": "get", "key": "a", "more": 1}"#, "3", "usage"),
      (#"{"id": 4, "do": "set", "key": "a", "value": [null]}"#, "4", "refused"),
      (#"{"id": 5, "do": "set", "key": "", "value": 1}"#, "5", "invalidKey"),
      (#"{"id": 6, "do": "sync", "timeout": -1}"#, "6", "usage"),
      (#"{"id": 6, "do": "sync", "devices": -1}"#, "6", "usage"),
      (#"{"id": 6, "do": "sync", "devices": 1.5}"#, "6", "usage"),
      (#"{"id": 7, "do": "remove"}"#, "7", "usage"),
      (#"{"id": 8, "do": "transaction", "set": {"a": 1}, "remove": ["a"]}"#, "8", "usage"),
      (#"{"id": 1.5, "do": "status"}"#, nil, "usage"),
      (String(repeating: " ", count: BatchLines.limit + 1), nil, "usage"),
    ]
    let input = Data(bad.map { $0.line + "\n" }.joined().utf8)
    let result = try await household.run(
      member, "batch", input: input + Data(#"{"id": 9, "do": "set", "key": "a", "value": 1}"#.utf8))
    #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    let lines = Self.lines(result.output)
    try #require(lines.count == bad.count + 2, "\(result.output)")
    for (line, expected) in zip(lines.dropFirst(), bad) {
      #expect(line.hasPrefix(#"{"error":{"code":"\#(expected.code)","message":""#), "\(line)")
      let id = expected.id.map { #","id":\#($0)"# } ?? ""
      #expect(line.hasSuffix(#"}\#(id),"version":1}"#), "\(line)")
    }
    // Also a last line without its line feed counts.
    #expect(lines.last == #"{"id":9,"removed":[],"set":["a"],"version":1}"#)
    #expect(try await household.run(member, "get", "a").output == "1\n")
  }

  @Test func `prints long answers in parts, in order`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let long = String(repeating: "x", count: BatchRound.answerBytes / 3)
    let lists = (1...9).map { #"{"id": \#($0), "do": "list"}"# }
    let requests =
      [#"{"id": 0, "do": "set", "key": "long", "value": "\#(long)"}"#] + lists
      + [#"{"id": 10, "do": "remove", "keys": ["long"]}"#]
    let result = try await household.run(
      member, "batch", input: Data(requests.joined(separator: "\n").utf8))
    let lines = Self.lines(result.output)
    try #require(result.status == 0 && lines.count == 12, "\(result.talk)")
    for number in 1...9 {
      let line = lines[number + 1]
      #expect(line.utf8.count > long.utf8.count, "\(number)")
      #expect(line.hasSuffix(#""id":\#(number),"store":"default","version":1}"#), "\(number)")
    }
    #expect(lines.last == #"{"id":10,"missing":[],"removed":["long"],"version":1}"#)
  }

  @Test func `has transactions refused whole, in the words of set`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let half = String(repeating: "x", count: 600_000)
    let requests = """
      {"id": 1, "do": "transaction", "set": {"small": 1, "a": "\(half)", "b": "\(half)"}}
      {"id": 2, "do": "get", "key": "small"}
      {"id": 3, "do": "set", "key": "small", "value": 2}
      """
    let result = try await household.run(member, "batch", input: Data(requests.utf8))
    let lines = Self.lines(result.output)
    try #require(result.status == 0 && lines.count == 4, "\(result)")
    #expect(lines[1].hasPrefix(#"{"error":{"code":"quotaExceeded","message":"The store would "#))
    #expect(lines[1].hasSuffix(#"See: kith ls -lS.","status":3},"id":1,"version":1}"#))
    #expect(lines[2].contains(#""code":"notFound""#))
    #expect(lines[3] == #"{"id":3,"removed":[],"set":["small"],"version":1}"#)
  }

  @Test(arguments: [false, true])
  func `shows reads the writes before them, and refuses writes alone`(hasNode: Bool) async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    if hasNode { try await household.start(member) }
    var (requests, expected): ([String], [String]) = ([], [Self.greeting])
    func ask(_ request: String, _ answer: String) {
      requests.append(request)
      expected.append(answer)
    }
    for number in 0..<200 {
      ask(
        #"{"do": "set", "key": "a", "value": \#(number)}"#,
        #"{"removed":[],"set":["a"],"version":1}"#)
      if number.isMultiple(of: 50) {
        ask(
          #"{"do": "set", "key": "", "value": 1}"#,
          #"{"error":{"code":"invalidKey""#)
        ask(
          #"{"do": "get", "key": "a"}"#,
          #"{"key":"a","type":"integer","value":\#(number),"version":1}"#)
        ask(
          #"{"do": "remove", "keys": ["a", "a2"]}"#,
          #"{"missing":["a2"],"removed":["a"],"version":1}"#)
        ask(#"{"do": "get", "key": "a"}"#, #"{"error":{"code":"notFound""#)
      }
    }
    let input = Data(requests.joined(separator: "\n").utf8)
    let result = try await household.run(member, "batch", input: input)
    #expect(result.status == 0 && result.talk.isEmpty, "\(result.talk)")
    let lines = Self.lines(result.output)
    try #require(lines.count == expected.count, "\(result.output)")
    for (line, start) in zip(lines, expected) { #expect(line.hasPrefix(start), "\(line)") }
    #expect(try await household.run(member, "get", "a").output == "199\n")
  }

  @Test(arguments: [false, true])
  func `goes on while the node is started, stopped and killed`(hasNode: Bool) async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    if hasNode { try await household.start(member) }
    let batch = try Conversation(with: member, in: household.root)
    try await batch.awaitLine(Self.greeting)
    func set(_ number: Int) async throws {
      try batch.send(#"{"id": \#(number), "do": "set", "key": "a", "value": \#(number)}"#)
      try await batch.awaitLine(#"{"id":\#(number),"removed":[],"set":["a"],"version":1}"#)
    }
    try await set(1)
    // Whoever has the directory: the node gets it.
    for (round, signal) in [SIGTERM, SIGKILL].enumerated() {
      try await household.stop(member, signal)
      try await set(10 * round + 2)
      try await household.start(member)
      #expect(try await household.run(member, "get", "a").output == "\(10 * round + 2)\n")
      try await set(10 * round + 3)
      let owner = try await member.client.status().processID
      #expect(owner == member.process?.id)
    }
    #expect(try await batch.end().status == 0)
    #expect(try await household.run(member, "get", "a").output == "13\n")
  }

  @Test func `tells changes while it sets`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let batch = try Conversation(with: member, in: household.root)
    func event(_ value: Int, _ reason: String) -> String {
      #"{"changes":[{"key":"a","removed":false,"value":\#(value)}],"id":"w","#
        + #""reason":"\#(reason)","version":1}"#
    }
    try batch.send(#"{"id": "w", "do": "watch", "keys": ["a"]}"#)
    try await batch.awaitLine(#"{"id":"w","store":"default","values":{},"version":1}"#)
    try batch.send(#"{"do": "set", "key": "a", "value": 1}"#)
    try batch.send(#"{"do": "set", "key": "b", "value": 1}"#)
    try await batch.awaitLine(event(1, "ownWrite"))
    try await member.client.write([("a", 2)], in: "default")
    try await batch.awaitLine(event(2, "externalChange"))
    for _ in 1..<BatchRound.mostWatches { try batch.send(#"{"id": "more", "do": "watch"}"#) }
    try batch.send(#"{"id": "last", "do": "watch"}"#)
    try await eventually("a refusal") { batch.lines.last?.contains(#""id":"last""#) == true }
    #expect(batch.lines.last?.hasPrefix(#"{"error":{"code":"failure""#) == true)
    #expect(try await batch.end().status == 0)
  }

  @Test func `serves other commands where no node runs`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let batch = try Conversation(with: member, in: household.root)
    try await batch.awaitLine(Self.greeting)
    let set = try await household.run(member, "set", "a", "1")
    #expect(set.status == 0, "\(set)")
    try batch.send(#"{"do": "get", "key": "a"}"#)
    try await batch.awaitLine(#"{"key":"a","type":"integer","value":1,"version":1}"#)
    #expect(try await batch.end().status == 0)
  }

  /// Its input stays open. A watch and a sync are under way.
  @Test func `ends at once if the directory cannot be followed any more`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    _ = try await household.join("beta")
    let batch = try Conversation(with: member, in: household.root)
    // Without a write the other device lacks nothing.
    try batch.send(#"{"do": "set", "key": "k", "value": 1}"#)
    try batch.send(#"{"id": 1, "do": "sync", "timeout": 3600}"#)
    try batch.send(#"{"id": 0, "do": "sync", "timeout": 3600, "devices": 0}"#)
    try batch.send(#"{"id": 2, "do": "watch"}"#)
    try await batch.awaitLine(#"{"id":2,"store":"default","values":{"k":1},"version":1}"#)
    try await eventually("0 devices") { batch.lines.contains { $0.contains(#""id":0"#) } }
    #expect(!batch.lines.contains { $0.contains(#""id":1"#) })
    let list = household.root.appending(path: "accounts.json")
    try Data("nonsense".utf8).write(to: list)
    chmod(list.path, 0o600)
    try FileManager.default.moveItem(
      at: list, to: member.directory.appending(path: "accounts.json"))
    let result = try await batch.process.wait()
    #expect(result.status == CommandStatus.failure.rawValue, "\(result)")
    #expect(result.talk.contains("accounts.json: the file cannot be understood"), "\(result)")
    #expect(result.talk.split(separator: "\n").count == 1, "\(result)")
  }

  @Test(arguments: [false, true])
  func `answers many sets in order, and keeps those answered`(hasNode: Bool) async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    if hasNode { try await household.start(member) }
    let count = 3_000
    let batch = try Conversation(with: member, in: household.root)
    for number in 1...count {
      let key = "k\(number % 100)"
      try batch.send(#"{"id": \#(number), "do": "set", "key": "\#(key)", "value": \#(number)}"#)
    }
    try await eventually("all answers") { batch.lines.count == count + 1 }
    // The processes that had them in memory are killed.
    batch.process.end()
    try await household.stop(member, SIGKILL)
    for (index, line) in batch.lines.dropFirst().enumerated() {
      #expect(line.hasPrefix(#"{"id":\#(index + 1),"removed":[],"#))
    }
    #expect(try await household.run(member, "get", "k99").output == "\(count - 1)\n")
    #expect(try await household.run(member, "get", "k0").output == "\(count)\n")
  }

  @Test func `creates a named store only with --create`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let request = Data(#"{"do": "set", "key": "a", "value": 1}"#.utf8)
    let refused = try await household.run(member, "batch", "--store", "new", input: request)
    #expect(refused.status == CommandStatus.notFound.rawValue && refused.output.isEmpty)
    #expect(refused.talk.contains("there is no store \"new\" here"), "\(refused)")
    let created = try await household.run(
      member, "batch", "--store", "new", "--create", input: request)
    #expect(created.status == 0, "\(created)")
    #expect(try await household.run(member, "get", "a", "--store", "new").output == "1\n")
  }

  private static let python = ["/usr/local/bin/python3", "/usr/bin/python3"].first {
    (path: String) in access(path, X_OK) == 0
  }

  @Test(.enabled(if: python != nil, "python3 is missing"))
  func `the example in Python does what it says`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let program = URL(filePath: #filePath)
      .appending(path: "../../../../Examples/python/kith_batch.py").standardized
    let result = try await KithProcess(
      command: [
        try #require(Self.python), program.path, "--directory", member.directory.path, "--store",
        "com.example.Python", "--create",
      ], in: household.root,
      environment: ["KITH": KithProcess.program.path, "PYTHONDONTWRITEBYTECODE": "1"]
    ).wait()
    #expect(result.status == 0 && result.talk.isEmpty, "\(result)")
    let expected = """
      theme: dark
      watched: theme dark
      theme: none width: 1280
      refused: valueTooLarge, 3
      2000 sets,
      """
    #expect(result.output.hasPrefix(expected), "\(result.output)")
  }
}

/// A `kith batch` that a test sends one request after the other.
private final class Conversation {
  let process: KithProcess
  private let input: FileHandle

  init(with member: Household.Member, in directory: URL) throws {
    let pipe = directory.appending(path: UUID().uuidString).path
    try #require(mkfifo(pipe, 0o600) == 0)
    // Also for reading, so that no opening waits for the other side.
    let file = open(pipe, O_RDWR | O_CLOEXEC)
    try #require(file >= 0)
    input = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    process = try KithProcess(
      command: [KithProcess.program.path, "batch", "--directory", member.directory.path],
      in: directory, inputFile: pipe)
  }

  var lines: [String] { process.printedSoFar.split(separator: "\n").map(String.init) }

  func send(_ line: String) throws { try input.write(contentsOf: Data((line + "\n").utf8)) }

  func awaitLine(_ line: String) async throws {
    try await eventually(line) { lines.contains(line) }
  }

  /// Ends the input.
  func end() async throws -> KithProcess.Result {
    try input.close()
    return try await process.wait()
  }
}
