import Foundation
import Glibc
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite("A node from start to end", .serialized, .timeLimit(.minutes(5)))
struct LifecycleTests {
  @Test func `signals stop the node cleanly`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for signal in [SIGTERM, SIGINT] {
      try await household.start(member)
      let result = try #require(try await household.stop(member, signal))
      #expect(result.status == 0)
      #expect(result.talk.hasSuffix("kith: stopped\n"))
      #expect(!FileManager.default.fileExists(atPath: member.directory.path + "/control"))
    }
  }

  @Test func `a second node is told who owns the directory`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let owner = try #require(member.process?.id)
    let second = try await household.run(member, "run", "--listen", "127.0.0.1", "--port", "0")
    #expect(second.status == CommandStatus.directory.rawValue)
    #expect(second.talk.contains("in use by process \(owner)"))
    #expect(second.talk.split(separator: "\n").count == 1)
  }

  @Test func `a node that meets short commands gets its turn, and they theirs`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for round in 0..<10 {
      var commands: [KithProcess] = []
      for index in 0..<3 {
        commands.append(
          try KithProcess(
            ["set", "k\(round) \(index)", "1", "--directory", member.directory.path],
            in: household.root))
      }
      try await household.start(member)
      for command in commands {
        let result = try await command.wait()
        #expect(result.status == 0, "\(result.talk)")
      }
      let result = try #require(try await household.stop(member))
      #expect(result.status == 0, "\(result.talk)")
    }
    let listed = try await household.run(member, "ls", "--json").output
    for round in 0..<10 {
      for index in 0..<3 { #expect(listed.contains("\"k\(round) \(index)\"")) }
    }
  }

  /// Root was told to take the directory from its user, or to use another one.
  @Test(
    .enabled(
      if: KithProcess.nobody != nil, "needs root, setpriv, and a build that others may run"))
  func `another user's directory is named with the command that works`() async throws {
    let household = try Household()
    let directory = household.root.appending(path: "service").path
    let nobody = try #require(getpwnam("nobody")).pointee.pw_uid
    chmod(household.root.path, 0o755)
    mkdir(directory, 0o700)
    chown(directory, nobody, 0)
    func asNobody(_ arguments: String...) throws -> KithProcess {
      try KithProcess(
        arguments + ["--directory", directory], in: household.root,
        launcher: try #require(KithProcess.nobody))
    }
    let created = try await asNobody("account", "create").wait()
    #expect(created.status == 0, "\(created)")
    var node: KithProcess?
    for isRunning in [false, true] {
      if isRunning {
        node = try asNobody("run", "--listen", "127.0.0.1", "--port", "0", "--no-discovery")
        try await eventually("the node") { node?.saidSoFar.contains("ready") == true }
      }
      for command in [["status"], ["set", "a", "1"], ["account", "create"], ["ls"]] {
        let result = try await KithProcess.run(
          command + ["--directory", directory], in: household.root)
        #expect(result.status == CommandStatus.directory.rawValue, "\(command): \(result)")
        #expect(
          result.talk.contains(
            "belongs to the user nobody; run kith as that user: runuser -u nobody -- kith status "
              + "--directory '\(directory)'"),
          "\(command), running: \(isRunning): \(result)")
      }
    }
  }

  @Test func `commands say the same with and without a node`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let pairs = ["theme", "dark", "n", "42", "list", "[1, 2.5, true]"]
    let set = try await KithProcess.run(
      ["set"] + pairs + ["--directory", member.directory.path], in: household.root)
    #expect(set.status == 0 && set.output.isEmpty && set.talk.isEmpty)
    let commands = [
      ["ls"], ["ls", "-l"], ["ls", "-lS"], ["ls", "--json"], ["get", "theme"],
      ["get", "list", "--json"], ["get", "missing"], ["export"], ["export", "--json"], ["unshown"],
      ["unshown", "--json"], ["history"], ["history", "theme", "--json"], ["undo", "missing"],
      ["account", "list"],
      ["rm", "missing"], ["set", "key", String(repeating: "x", count: 2_000_000 / 1_000)],
      ["set", String(repeating: "k", count: 65), "1"],
    ]
    func all() async throws -> [String] {
      var said: [String] = []
      for command in commands {
        let result = try await KithProcess.run(
          command + ["--directory", member.directory.path], in: household.root)
        said.append("\(command.joined(separator: " ").prefix(40)): \(result)")
      }
      return said
    }
    // The first round writes `key`; from then on nothing changes any more.
    _ = try await all()
    let without = try await all()
    try await household.start(member)
    let with = try await all()
    for (one, other) in zip(without, with) { #expect(one == other) }
  }

  @Test func `missing, refused, unreachable and mistyped have statuses of their own`() async throws
  {
    let household = try Household()
    let member = try await household.create("alpha")
    let expected: [(arguments: [String], status: CommandStatus)] = [
      (["get", "nothing"], .notFound), (["rm", "nothing"], .notFound),
      (["set", "", "x"], .refused), (["set", "n", "x", "--type", "integer"], .refused),
      (["watch"], .unreachable), (["sync"], .unreachable), (["account", "create"], .directory),
      (["join", "nonsense"], .directory), (["set", "key"], .usage), (["nonsense"], .usage),
      (["import", "/nowhere"], .failure), (["invite"], .refused),
      (["run", "--listen", "1.2.3.4:5", "--port", "6"], .usage), (["ls"], .success),
    ]
    for (arguments, status) in expected {
      let result = try await KithProcess.run(
        arguments + (arguments == ["nonsense"] ? [] : ["--directory", member.directory.path]),
        in: household.root)
      #expect(result.status == status.rawValue, "\(arguments): \(result.talk)")
      if status != .success {
        #expect(result.output.isEmpty)
        #expect(result.talk.hasPrefix("kith: "))
      }
    }
    let empty = household.root.appending(path: "empty").path
    let missing = try await KithProcess.run(["ls", "--directory", empty], in: household.root)
    #expect(missing.status == CommandStatus.success.rawValue && missing.output.isEmpty)
    #expect(missing.talk.contains("nobody is signed in here"))
    let token = try await KithProcess.run(
      ["join", "nonsense", "--directory", empty], in: household.root)
    #expect(token.status == CommandStatus.refused.rawValue)
  }

  @Test func `a missing key shows the default, as it was typed`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    #expect(try await household.run(member, "set", "here", "1").status == 0)
    for (arguments, output) in [
      (["here", "--default", "2"], "1\n"), (["gone", "--default", "1.10"], "1.10\n"),
      (["gone", "--raw", "--default", "-x"], "-x"), (["gone", "--default", ""], "\n"),
    ] {
      let result = try await KithProcess.run(
        ["get", "--directory", member.directory.path] + arguments, in: household.root)
      #expect(result.status == 0 && result.output == output, "\(arguments): \(result)")
    }
    let json = try await household.run(member, "get", "gone", "--default", "5", "--json").output
    #expect(json.contains("\"isDefault\": true") && json.contains("\"value\": 5"), "\(json)")
    // Also in a store that is not there yet, which reading does not create.
    for _ in 1...2 {
      let early = try await household.run(member, "get", "k", "--store", "s", "--default", "1")
      #expect(early.status == 0 && early.output == "1\n", "\(early)")
      let missing = try await household.run(member, "get", "k", "--store", "s")
      #expect(missing.status == CommandStatus.notFound.rawValue && missing.output.isEmpty)
    }
  }

  @Test func `a value that is not the expected one is not replaced`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for isRunning in [false, true] {
      if isRunning { try await household.start(member) }
      for (arguments, status) in [
        (["n", "1", "m", "1", "--if-missing"], .success),
        (["n", "2", "--if-missing"], .unexpected),
        (["n", "2", "k", "2", "--if-missing"], .unexpected),
        (["n", "2", "--if-value", "1"], .success), (["n", "3", "--if-value", "1"], .unexpected),
        (["n", "3", "--if-value", "2.0"], .unexpected),
        (["n", "3", "--if-value", "2", "--type", "string"], .unexpected),
        (["k", "3", "--if-value", "2"], .unexpected),
        (["n", "-3", "--if-value", "2"], .success), (["n", "2", "--if-value", "-3"], .success),
        (["n", "2", "--if-value", "2", "--if-missing"], .usage),
        (["n", "2", "m", "2", "--if-value", "2"], .usage),
      ] as [([String], CommandStatus)] {
        let result = try await KithProcess.run(
          ["set", "--directory", member.directory.path] + arguments, in: household.root)
        #expect(result.status == status.rawValue, "\(arguments): \(result)")
      }
      #expect(try await household.run(member, "get", "n").output == "2\n")
      for (arguments, status) in [
        (["n", "--if-value", "1"], .unexpected), (["k", "--if-value", "1"], .unexpected),
        (["n", "--if-value", "2", "--type", "string"], .unexpected),
        (["n", "m", "--if-value", "2"], .usage), (["--prefix", "n", "--if-value", "2"], .usage),
        (["m", "--if-value", "1"], .success), (["n", "--if-value", "2"], .success),
      ] as [([String], CommandStatus)] {
        let result = try await KithProcess.run(
          ["rm", "--directory", member.directory.path] + arguments, in: household.root)
        #expect(result.status == status.rawValue, "\(arguments): \(result)")
      }
      #expect(try await household.run(member, "ls").output.isEmpty)
    }
    let other = try await household.run(
      member, "set", "k", "1", "--if-value", "2", "--store", "s", "--create")
    #expect(other.status == CommandStatus.unexpected.rawValue)
    let status = try await household.run(member, "status", "--json").output
    #expect(!status.contains("\"identifier\": \"s\""), "\(status)")
  }

  @Test func `keys of a prefix are removed together`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let set = try await household.run(member, "set", "e.a", "1", "e.b", "2", "e", "3", "é", "4")
    #expect(set.status == 0, "\(set)")
    let removed = try await household.run(member, "rm", "--prefix", "e.")
    #expect(removed.status == 0 && removed.output.isEmpty)
    #expect(removed.talk == "Removed 2 keys.\n")
    #expect(try await household.run(member, "ls").output == "e\né\n")
    let none = try await household.run(member, "rm", "--prefix", "e.")
    #expect(none.status == CommandStatus.notFound.rawValue)
    #expect(try await household.run(member, "rm", "--prefix", "e.", "--force").status == 0)
    for arguments in [["--prefix", ""], ["--prefix", "e", "e"], []] {
      let result = try await KithProcess.run(
        ["rm", "--directory", member.directory.path] + arguments, in: household.root)
      #expect(result.status == CommandStatus.usage.rawValue, "\(arguments): \(result)")
    }
    let json = try await household.run(member, "rm", "--prefix", "e", "--json")
    #expect(json.output.contains("\"e\"") && !json.output.contains("é"), "\(json)")
  }

  @Test func `all keys of a store are removed, and its name stays`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for isRunning in [false, true] {
      if isRunning { try await household.start(member) }
      let set = try await household.run(
        member, "set", "a", "1", "b", "2", "--store", "s", "--create")
      #expect(set.status == 0, "\(set)")
      let listed = try await household.run(member, "stores").output
      #expect(listed.contains("\ns "), "\(listed)")
      let unsure = try await household.run(member, "stores", "rm", "s")
      #expect(unsure.status == CommandStatus.refused.rawValue && unsure.talk.contains("--yes"))
      let removed = try await household.run(member, "stores", "rm", "s", "--yes", "--json")
      #expect(removed.status == 0 && removed.output.contains("\"b\""), "\(removed)")
      #expect(removed.talk == "Removed 2 keys.\n")
      #expect(try await household.run(member, "ls", "--store", "s").output.isEmpty)
      #expect(!(try await household.run(member, "stores").output.contains("\ns ")))
      #expect(try await household.run(member, "stores", "--all").output.contains("\ns "))
      let again = try await household.run(member, "stores", "rm", "s")
      #expect(again.status == 0 && again.talk == "The store is empty.\n", "\(again)")
    }
    let none = try await household.run(member, "stores", "rm", "t", "--yes")
    #expect(none.status == CommandStatus.notFound.rawValue && none.talk.contains("no store"))
  }

  @Test func `long keys are imported into a store that is made for them`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let key = "org/gnome/" + String(repeating: "k", count: 83)
    let file = household.root.appending(path: "file.json").path
    try Data("{\"\(key)\": 1}".utf8).write(to: URL(filePath: file))
    for isRunning in [false, true] {
      if isRunning { try await household.start(member) }
      let name = "long\(isRunning)"
      let refused = try await household.run(member, "import", file)
      #expect(refused.status == CommandStatus.refused.rawValue, "\(refused)")
      #expect(refused.output.contains("--store NAME --key-bytes 93\n"), "\(refused)")
      func run(_ more: String...) async throws -> KithProcess.Result {
        try await KithProcess.run(
          ["import", file, "--directory", member.directory.path] + more, in: household.root)
      }
      let trial = try await run("--dry-run", "--store", name, "--key-bytes", "93")
      #expect(trial.status == 0 && trial.output.contains("1 key would be"), "\(trial)")
      let unsure = try await run("--store", name, "--key-bytes", "93")
      #expect(unsure.status == CommandStatus.notFound.rawValue, "\(unsure)")
      let usual = try await run("--key-bytes", "93")
      #expect(usual.status == CommandStatus.usage.rawValue, "\(usual)")
      let made = try await run("--create", "--store", name, "--key-bytes", "93")
      #expect(made.status == 0, "\(made)")
      #expect(try await household.run(member, "get", key, "--store", name).output == "1\n")
      let longer = try await run("--store", name, "--key-bytes", "94")
      #expect(longer.status == CommandStatus.refused.rawValue, "\(longer)")
      #expect(try await run("--store", name, "--key-bytes", "80").status == 0)
    }
    // A node with this store keeps its limits.
    try await household.stop(member)
    member.environment = ["KITH_STORE_IDENTIFIER": "longfalse"]
    try await household.start(member)
    let status = try await household.run(member, "status", "--json").output
    #expect(status.ranges(of: "\"keyBytes\": 93").count == 2, "\(status)")
  }

  @Test func `completions know names, and keep silent without any`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    #expect(try await household.run(member, "set", "a key", "1", "b\nc", "2").status == 0)
    let stored = try await household.run(member, "set", "k", "1", "--store", "s", "--create")
    #expect(stored.status == 0)
    func complete(
      _ words: [String], _ argument: String, in directory: String
    ) async throws -> String {
      let line = ["kith"] + words + ["--directory", directory]
      let result = try await KithProcess.run(
        ["---completion"] + words.filter { !$0.hasPrefix("-") && $0 != "s" }
          + ["--", argument, "\(line.count)", "0"] + line + [""],
        in: household.root)
      #expect(result.status == 0 && result.talk.isEmpty, "\(words): \(result)")
      return result.output
    }
    for isRunning in [false, true] {
      if isRunning { try await household.start(member) }
      let path = member.directory.path
      for words in [["get"], ["set"], ["rm"], ["ls"], ["watch"]] {
        #expect(try await complete(words, "positional@0", in: path) == "a key\n")
      }
      #expect(try await complete(["get", "--store", "s"], "positional@0", in: path) == "k\n")
      let stores = try await complete(["get"], "--store", in: path)
      #expect(stores.split(separator: "\n").contains("s"), "\(stores)")
      #expect(try await complete(["devices", "revoke"], "positional@0", in: path) == "alpha\n")
      let accounts = try await complete(["account", "sign-in"], "positional@0", in: path)
      #expect(accounts.trimmingCharacters(in: .newlines).count == 64, "\(accounts)")
    }
    let path = member.directory.path
    // A node that does not answer is not waited for.
    member.process?.send(SIGSTOP)
    try await eventually { member.process?.state == "T" }
    #expect(try await complete(["get"], "positional@0", in: path).isEmpty)
    member.process?.send(SIGCONT)
    try await household.stop(member)
    // The noted accounts need no device.
    #expect(try await household.run(member, "account", "sign-out").status == 0)
    let noted = try await complete(["account", "sign-in"], "positional@0", in: path)
    #expect(noted.trimmingCharacters(in: .newlines).count == 64, "\(noted)")
    let empty = household.root.appending(path: "empty").path
    #expect(try await complete(["get"], "positional@0", in: empty).isEmpty)
    #expect(try await complete(["account", "sign-in"], "positional@0", in: empty).isEmpty)
    #expect(!FileManager.default.fileExists(atPath: empty))
  }

  @Test func `watch runs a command for each change, one after the other`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let log = household.root.appending(path: "log")
    let reading = try KithProcess(
      [
        "watch", "--exec", "mkdir busy || echo overlap >> log; cat >> log; rmdir busy; exit 3",
        "--directory", member.directory.path,
      ], in: household.root)
    // Reads nothing, not even what no pipe holds.
    let deaf = try KithProcess(
      ["watch", "big", "--exec", "kill $$", "--directory", member.directory.path],
      in: household.root)
    for watch in [reading, deaf] {
      try await eventually("watch to begin") { watch.saidSoFar.contains("watching") }
    }
    func lines() -> [String] {
      ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n")
        .map(String.init)
    }
    for number in 0..<5 {
      try await member.client.write([("n", .integer(Int64(number)))], in: "default")
      try await eventually("a command to end") {
        reading.saidSoFar.ranges(of: "the command ended with status 3\n").count == number + 1
      }
    }
    let big = String(repeating: "x", count: 200_000)
    try await member.client.write([("big", .string(big))], in: "default")
    try await eventually("the last commands to end") {
      reading.saidSoFar.ranges(of: "the command ended with status 3\n").count == 6
        && deaf.saidSoFar.contains("the command ended with status 143\n")
    }
    try #require(lines().count == 6)
    for (number, line) in lines().prefix(5).enumerated() {
      #expect(
        line == """
          {"changes":[{"key":"n","removed":false,"value":\(number)}],"reason":"ownWrite","version":1}
          """)
    }
    #expect(lines()[5].contains(big))
    #expect(reading.printedSoFar.isEmpty)
  }

  @Test func `watch joins the changes that come while a command runs`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let log = household.root.appending(path: "log")
    let slow = try KithProcess(
      [
        "watch", "--exec", "cat >> log; while [ ! -e go ]; do sleep 0.02; done", "--directory",
        member.directory.path,
      ], in: household.root)
    let other = try KithProcess(
      ["watch", "--json", "--directory", member.directory.path], in: household.root)
    for watch in [slow, other] {
      try await eventually("watch to begin") { watch.saidSoFar.contains("watching") }
    }
    func lines() -> [String] {
      ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n")
        .map(String.init)
    }
    let count = 300
    for number in 0..<count {
      try await member.client.write(
        [("n", .integer(Int64(number))), ("key \(number % 10)", 1)], in: "default")
      if number == 0 { try await eventually("the first command") { lines().count == 1 } }
    }
    let last = #"{"key":"n","removed":false,"value":\#(count - 1)}"#
    // The node has told it all by now, or is about to.
    try await eventually("the other watch") { other.printedSoFar.contains(last) }
    try Data().write(to: household.root.appending(path: "go"))
    try await eventually("the last command") { lines().last?.contains(last) == true }
    #expect(lines().count < count / 10, "\(lines().count)")
    #expect(lines()[1].contains(#""joined":true"#) && lines()[1].contains(#""key":"key 9""#))
  }

  @Test func `watch prints changes as lines of JSON`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    try await household.start(member)
    let watch = try KithProcess(
      ["watch", "--json", "--directory", member.directory.path], in: household.root)
    try await eventually("watch to begin") { watch.saidSoFar.contains("watching") }
    try await member.client.write([("a", 1), ("b", "two")], in: "default")
    try await member.client.write([("a", nil)], in: "default")
    try await eventually("two lines") { watch.printedSoFar.count { $0 == "\n" } >= 2 }
    #expect(
      watch.printedSoFar == """
        {"changes":[{"key":"a","removed":false,"value":1},{"key":"b","removed":false,\
        "value":"two"}],"reason":"ownWrite","version":1}
        {"changes":[{"key":"a","removed":true}],"reason":"ownWrite","version":1}

        """)
    try await household.stop(member)
    let result = try await watch.wait()
    #expect(result.status == CommandStatus.unreachable.rawValue)
  }
}
