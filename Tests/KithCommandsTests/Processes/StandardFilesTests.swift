import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

/// The results if standard output takes nothing, or if input is no plain file.
@Suite("Standard output that is full, input that is a pipe", .timeLimit(.minutes(5)))
struct StandardFilesTests {
  /// Runs a command line of `sh` in which `$KITH` is the program, on a directory.
  private func shell(_ script: String, in directory: URL) async throws -> KithProcess.Result {
    try await KithProcess(
      command: ["/bin/bash", "-c", script], in: directory,
      environment: [
        "KITH": KithProcess.program.path, "KITH_DIRECTORY": directory.appending(path: "a").path,
      ]
    ).wait()
  }

  @Test func `a command whose output cannot be written fails`() async throws {
    let household = try Household()
    for json in ["", "--json"] {
      try? FileManager.default.removeItem(at: household.root.appending(path: "a"))
      let create = try await shell(
        "$KITH account create --quiet --name a \(json) >/dev/full", in: household.root)
      #expect(create.status == CommandStatus.failure.rawValue)
      // Nobody has seen the recovery key, so there is no account.
      #expect(create.talk.contains("No account was begun"), "\(create.talk)")
      let devices = try await shell("$KITH devices", in: household.root)
      #expect(devices.status == CommandStatus.directory.rawValue, "\(devices)")
    }
    _ = try await shell("$KITH account create --name a; $KITH set key value", in: household.root)
    for command in [
      "export", "export --json", "ls", "get key", "get key --raw", "status --json",
      "unshown --take --json", "unshown --json", "history", "history --json", "--help", "--version",
      "--generate-completion-script bash",
      "set a 1 --json", "rm a --json", "devices", "account list",
    ] {
      let result = try await shell("$KITH \(command) >/dev/full", in: household.root)
      #expect(result.status == CommandStatus.failure.rawValue, "\(command)")
      #expect(result.talk.contains("standard output: No space left on device"), "\(command)")
      let closed = try await shell("$KITH \(command) >&-", in: household.root)
      #expect(closed.status == CommandStatus.failure.rawValue, "\(command)")
      #expect(closed.talk.contains("standard output: it is closed"), "\(command)")
    }
  }

  /// It never said that the device had joined.
  @Test func `a join that cannot be printed is told all the same`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    let invitation = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory", alpha.directory.path,
      ], in: household.root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }
    try Data(invitation.printedSoFar.utf8).write(to: household.root.appending(path: "token"))
    let joined = try await shell("$KITH join - --name beta <token >/dev/full", in: household.root)
    #expect(joined.status == CommandStatus.failure.rawValue, "\(joined)")
    #expect(joined.talk.contains("this device has joined; standard output: No space"), "\(joined)")
    #expect(try await invitation.wait().status == 0)
  }

  @Test func `input comes from pipes, up to a limit`() async throws {
    let household = try Household()
    _ = try await household.create("a")
    let script = """
      mkfifo fifo; echo '{"one": 1}' >fifo & $KITH import fifo && $KITH import <(echo '{"two": 2}')
      echo '{"three": 3}' | $KITH import - && $KITH ls
      """
    let result = try await shell(script, in: household.root)
    #expect(result.status == 0 && result.output.hasSuffix("one\nthree\ntwo\n"), "\(result)")
    for command in ["import /dev/zero", "import - </dev/zero", "set key - </dev/zero"] {
      let result = try await shell("$KITH \(command)", in: household.root)
      #expect(result.status == CommandStatus.failure.rawValue)
      #expect(result.talk.contains("has more than 64.0 MiB"), "\(result)")
    }
    let closed = try await shell("$KITH set key - <&-", in: household.root)
    #expect(closed.status == CommandStatus.failure.rawValue)
    #expect(closed.talk == "kith: standard input: it is closed; pipe something in\n")
  }

  /// It ended the node without a word.
  @Test func `a node goes on if nobody reads its log`() async throws {
    let household = try Household()
    _ = try await household.create("a")
    let result = try await shell(
      """
      exec 3< <(
        $KITH run --listen 127.0.0.1 --port 0 --no-discovery 2>&1 >/dev/null & echo $! >id
        wait $!; echo $? >status
      )
      head -n 1 <&3; exec 3<&-
      $KITH set theme dark; kill $(cat id)
      for i in $(seq 300); do test -s status && break; sleep 0.1; done; cat status
      """, in: household.root)
    #expect(result.output.contains("ready") && result.output.hasSuffix("\n0\n"), "\(result)")
  }

  @Test func `a directory whose tilde the shell left is refused`() async throws {
    let household = try Household()
    for command in ["KITH_DIRECTORY='~/x' $KITH set k 1", "$KITH set k 1 --directory='~/x'"] {
      let result = try await shell(command, in: household.root)
      #expect(result.status == CommandStatus.usage.rawValue, "\(result)")
      #expect(result.talk.contains("begins with ~"), "\(result)")
    }
    #expect(try await shell("ls -A | grep -c '~'", in: household.root).output == "0\n")
  }

  @Test func `reading begins no store`() async throws {
    let household = try Household()
    let member = try await household.create("a")
    let reads = [
      "get key", "ls", "export", "unshown", "unshown --take", "rm key", "rm -f key", "history",
      "undo key",
      "set key 1", "import <(echo '{\"k\": 1}')", "set --create '' 1",
      "import --dry-run <(echo '{\"k\": 1}')",
    ]
    func all() async throws -> [String] {
      var said: [String] = []
      for command in reads {
        let result = try await shell("$KITH \(command) --store typo", in: household.root)
        said.append("\(command): \(result)")
        let status: CommandStatus =
          command.contains("--create") ? .refused : command.contains("dry") ? .success : .notFound
        #expect(result.status == status.rawValue, "\(command): \(result)")
        if status == .notFound {
          #expect(result.output.isEmpty)
          #expect(result.talk.hasPrefix("kith: there is no store \"typo\" here"), "\(result)")
        }
      }
      // The default store cannot have been mistyped: it is there, and empty.
      for command in ["ls", "export", "unshown", "history", "ls --store default"] {
        let result = try await shell("$KITH \(command)", in: household.root)
        #expect(result.status == 0, "\(command): \(result)")
        let named = try await shell(
          "KITH_STORE_IDENTIFIER=usual $KITH \(command)", in: household.root)
        // A node has begun the one that is usual without the variable.
        let isThere = !command.contains("--store") || member.process != nil
        #expect(named.status == (isThere ? 0 : 2), "\(command): \(named)")
      }
      let status = try await shell("$KITH status --json", in: household.root)
      #expect(!status.output.contains("typo"))
      return said
    }
    let without = try await all()
    try await household.start(member)
    #expect(try await all() == without)
    for command in ["watch", "sync"] {
      let result = try await shell("$KITH \(command) --store typo", in: household.root)
      #expect(result.status == CommandStatus.notFound.rawValue, "\(result)")
      #expect(result.talk.contains("no store \"typo\" yet"))
    }
    _ = try await all()
    let status = try await shell("$KITH status --json", in: household.root)
    #expect(status.output.contains("\"keys\": 1024"))
  }

  /// `kith set --store com.exmaple.Editor` made a store on all devices, for ever.
  @Test func `only the default store is begun by writing alone`() async throws {
    let household = try Household()
    let member = try await household.create("a")
    func kith(_ command: String) async throws -> KithProcess.Result {
      try await shell("$KITH \(command)", in: household.root)
    }
    for isRunning in [false, true] {
      if isRunning { try await household.start(member) }
      let name = "com.example.\(isRunning)"
      let refused = try await kith("set --store \(name) k 1")
      #expect(refused.status == CommandStatus.notFound.rawValue)
      #expect(refused.talk.contains("--create"), "\(refused)")
      #expect(try await kith("set --store \(name) --create k 1").status == 0)
      #expect(try await kith("set --store \(name) k 2").status == 0)
      #expect(try await kith("get --store \(name) k").output == "2\n")
      let imported = "import --store \(name).imported <(echo '{\"k\": 1}')"
      #expect(try await kith(imported).status == CommandStatus.notFound.rawValue)
      #expect(try await kith("\(imported) --create").status == 0)
      #expect(try await kith(imported).status == 0)
      let usual = try await shell(
        "KITH_STORE_IDENTIFIER=\(name).usual $KITH set k 1 && $KITH set k 1 && $KITH ls",
        in: household.root)
      #expect(usual.status == 0 && usual.output == "k\n", "\(usual)")
    }
  }

  @Test func `sync says what it lacks`() async throws {
    let household = try Household()
    let member = try await household.create("a")
    try await household.start(member)
    let alone = try await shell("$KITH sync --timeout 0", in: household.root)
    #expect(alone.status == 0 && alone.talk.contains("kith invite"))
    _ = try await household.join("b")
    _ = try await shell("$KITH set key 1", in: household.root)
    let away = try await shell("$KITH sync --timeout 0", in: household.root)
    #expect(away.status == CommandStatus.unreachable.rawValue)
    #expect(away.talk.contains("b is not connected; start its node"), "\(away)")
  }
}

/// The effects of a power cut on the list of accounts, derived from the order of the system calls.
@Suite("Small files survive a power cut", .timeLimit(.minutes(5)))
struct SmallFileTests {
  /// Whether processes may be traced here.
  private static let traces = (try? Shell.run("strace", "-o", "/dev/null", "true")) != nil

  @Test(.enabled(if: traces, "strace is not there, or may not trace"))
  func `a file is on the disk before it takes another's place, its name after`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    let trace = household.root.appending(path: "trace")
    let result = try await KithProcess(
      ["account", "sign-out", "--directory", member.directory.path], in: household.root,
      launcher: [
        "strace", "-f", "-y", "-o", trace.path, "-e",
        "trace=fsync,fdatasync,write,rename,renameat,renameat2",
      ]
    ).wait()
    #expect(result.status == 0, "\(result)")
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let new = "accounts.json.new"
    let renamed = try #require(
      lines.firstIndex { $0.contains("rename") && $0.contains(new) }, "\(lines.suffix(20))")
    let written = try #require(
      lines.firstIndex { $0.contains("write(") && $0.contains("\(new)>") })
    let synced = lines.firstIndex { $0.contains("sync(") && $0.contains("\(new)>") }
    #expect(synced.map { written < $0 && $0 < renamed } == true)
    let directory = "\(member.directory.path.trimmingSuffix("/"))>"
    #expect(
      lines[renamed...].contains { $0.contains("sync(") && $0.contains(directory) },
      "\(lines[renamed...])")
  }
}

extension String {
  /// The text without an ending, if it has it.
  fileprivate func trimmingSuffix(_ suffix: String) -> String {
    hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
  }
}
