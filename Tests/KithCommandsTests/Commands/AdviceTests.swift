import Kith
import KithTerminal
import Testing

@testable import KithCommands

@Suite("Advice of the command line")
struct AdviceTests {
  @Test func `errors of Kith have statuses, and one line`() throws {
    let expected: [(KithError.Code, CommandStatus)] = [
      (.invalidKey, .refused), (.quotaExceeded, .refused), (.valueTooLarge, .refused),
      (.missing, .directory), (.inUse, .directory), (.alreadyExists, .directory),
      (.network, .unreachable), (.timedOut, .unreachable), (.diskFull, .failure),
      (.damaged, .failure), (.pairingCode, .refused), (.declined, .refused),
      (.unexpectedValue, .unexpected),
    ]
    for (code, status) in expected {
      let failure = try #require(CommandFailure(KithError(code, "Said.", key: "k\n")))
      #expect(failure.status == status)
      #expect(failure.message?.hasPrefix("\"k\\n\": Said.") == true)
    }
  }

  @Test func `errors say what to do on the command line`() {
    let expected: [(KithError.Code, String)] = [
      (.quotaExceeded, "kith ls -lS"), (.invalidName, "--name"), (.unknownStore, "kith status"),
    ]
    for (code, advice) in expected {
      #expect(CommandFailure(KithError(code, "Said."))?.message?.contains(advice) == true)
    }
  }

  @Test func `an option is suggested if it is near, and never one that answers for a person`() {
    func text(_ line: String) -> String {
      do {
        _ = try KithCommand.parseAsRoot(line.split(separator: " ").map(String.init))
        return ""
      } catch {
        return KithTool.ending(of: error).text ?? ""
      }
    }
    for line in [
      "invite --token --peer x", "sync --wait 5", "invite --yess", "rm --forc a", "rm --fource a",
      "undo --yet k",
    ] {
      #expect(text(line).contains("Unknown option '--"), "\(line): \(text(line))")
      #expect(!text(line).contains("Did you mean"), "\(line): \(text(line))")
    }
    #expect(text("ls --jsn").contains("Unknown option '--jsn'. Did you mean '--json'?"))
  }

  @Test func `a command that is none is named, with the one that may be meant`() throws {
    func failure(_ line: String) -> CommandFailure? {
      let arguments = line.split(separator: " ").map(String.init)
      do throws(CommandFailure) {
        try CommandName.check(arguments, of: KithCommand.self)
        return nil
      } catch {
        return error
      }
    }
    for (line, meant) in [
      ("help nope", nil), ("nope --help", nil), ("nope", nil), ("gett x", "get"),
      ("help staus", "status"), ("devices renmae a b", "rename"),
      ("help account recvoer", "recover"),
      ("Set a 1", "set"), ("x", nil), ("help help", nil),
    ] as [(String, String?)] {
      let failure = try #require(failure(line), "\(line)")
      #expect(failure.status == .usage)
      let said = try #require(failure.message)
      #expect(said.contains("there is no command"), "\(said)")
      #expect(said.contains("did you mean") == (meant != nil), "\(said)")
      if let meant { #expect(said.contains(" \(meant)'?"), "\(said)") }
    }
    for (line, meant) in [
      ("unset x", "rm"), ("del x", "rm"), ("put a 1", "set"), ("show a", "get"),
      ("create", "account create"), ("leave", "account leave"), ("revoke x", "devices revoke"),
      ("rename a b", "devices rename"), ("sign-out", "account sign-out"), ("peers", "devices"),
      ("up", "run"), ("login", "account sign-in"), ("version", "--version"), ("info", "status"),
      ("devices remove x", "devices revoke"), ("devices add", "invite"),
      ("carrier delete x", "carrier remove"), ("account logout", "account sign-out"),
    ] {
      #expect(failure(line)?.message?.hasSuffix("did you mean 'kith \(meant)'?") == true, "\(line)")
    }
    #expect(failure("logs")?.message?.contains("journalctl") == true)
    // Nothing is suggested that removes more than was asked for.
    for line in ["stop", "down", "service stop", "restart"] {
      #expect(failure(line)?.message?.contains("'systemctl --user ") == true, "\(line)")
    }
    for (line, meant) in [
      ("repair", "doctor --repair"), ("redo", "undo"), ("find x", "ls"), ("-V", "--version"),
      ("--verson", "--version"), ("signin", "account sign-in"), ("load x", "import"),
      ("restore x", "import"), ("completion", "--generate-completion-script bash"),
      ("account signout", "account sign-out"),
    ] {
      #expect(failure(line)?.message?.hasSuffix("did you mean 'kith \(meant)'?") == true, "\(line)")
    }
    #expect(
      failure("--store other ls editor.")?.message
        == "options stand after the command: kith ls editor. --store other")
    #expect(failure("-d /x devices list")?.message?.hasSuffix("kith devices list -d /x") == true)
    for line in [
      "", "help", "--help", "-h", "--nonsense", "help set", "help devices rename", "devices",
      "devices --all",
      "set nope 1", "get nope", "account create", "--version",
      "--generate-completion-script bash",
    ] {
      #expect(failure(line) == nil, "\(line)")
    }
  }
}

@Suite("Addresses that lead nowhere")
struct ForgettingTests {
  @Test(arguments: [("nas:4114", "nas:4114"), ("-x:4114", "-- -x:4114")])
  func `the command that forgets one can be run`(address: String, words: String) {
    let known = NodeStatus.Address(address: address, source: .named)
    #expect(known.forgetting == "kith devices forget " + words)
  }
}
