import Foundation
import UbiquitousKeyValueStore

// Bookmarks that are the same on all of a person's devices, with Apple's class.
//
//   bookmarks-classic add URL TITLE | remove URL | list | watch
//
// Which store it is, says `UbiquityBootstrap`; where the others are, KITH_PEERS (host:port, …). The
// directory is that of KITH_DIRECTORY, or the user's usual one.

try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks") {
  let environment = ProcessInfo.processInfo.environment
  if let peers = environment["KITH_PEERS"] {
    $0.peers = peers.split(separator: ",").map(String.init)
  }
  $0.port = 0
}

func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

func fail(_ line: String) -> Never {
  FileHandle.standardError.write(Data((line + "\n").utf8))
  exit(1)
}

func show(_ bookmarks: [[String: Any]]) {
  for bookmark in bookmarks {
    say("  \(bookmark["title"] as? String ?? "")  \(bookmark["url"] as? String ?? "")")
  }
}

let manager = BookmarkManager()
let arguments = Array(CommandLine.arguments.dropFirst())

switch (arguments.first, arguments.count) {
case ("add", 3):
  manager.add(url: arguments[1], title: arguments[2])
  say("added \(arguments[2])")
case ("remove", 2):
  guard manager.remove(url: arguments[1]) else { fail("there is no bookmark of \(arguments[1])") }
  say("removed \(arguments[1])")
case ("list", 1):
  show(manager.bookmarks)
case ("watch", 1):
  manager.onChange = { reason, keys in
    say("reason \(reason): \(keys.joined(separator: ", "))")
    show(manager.bookmarks)
  }
  say("watching")
  RunLoop.main.run()
default:
  fail("usage: bookmarks-classic add URL TITLE | remove URL | list | watch")
}
