import Foundation
import UbiquitousKeyValueStore

/// Two programs that name the same store at the same time. Each hears of the other's writes.
@MainActor struct Neighbours {
  let checks: Checks
  private let heard = Locked<String>()

  private var store: NSUbiquitousKeyValueStore { .default }

  init(checks: Checks) {
    self.checks = checks
    _ = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
      object: NSUbiquitousKeyValueStore.default, queue: .main
    ) { [heard] notification in
      let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
      for key in keys ?? [] { heard.append(key) }
    }
  }

  /// One of four that begin at once: each says that it is there, and waits for the others. The
  /// first to see all says so, because a process that leaves takes the directory's node with it.
  func crowd(_ name: String) {
    store.set(true, forKey: "program\(name)")
    checks.expect(store.synchronize())
    let all = (1...4).map { "program\($0)" }
    checks.wait { all.allSatisfy(store.bool(forKey:)) }
    store.set(true, forKey: "seen\(name)")
    checks.expect(store.synchronize())
    checks.wait { (1...4).allSatisfy { store.bool(forKey: "seen\($0)") } }
    checks.expect(store.synchronize())
  }

  /// Is there first, answers what it hears, and stays until it is told to go.
  func host() {
    checks.expect(store.synchronize())
    print("ready")
    fflush(nil)
    checks.wait { heard.all.contains("question") }
    checks.expect(store.string(forKey: "question") == "who?")
    store.set("me", forKey: "answer")
    checks.expect(store.synchronize())
    checks.wait { heard.all.contains("end") }
    // Own writes are not heard.
    checks.expect(!heard.all.contains("answer"))
  }

  /// Comes second, asks, sends the first one away, and goes on alone.
  func guest() {
    store.set("who?", forKey: "question")
    checks.expect(store.synchronize())
    checks.wait { heard.all.contains("answer") }
    checks.expect(store.string(forKey: "answer") == "me")
    checks.expect(!heard.all.contains("question"))
    store.set(true, forKey: "end")
    checks.expect(store.synchronize())
    checks.wait { kill(hostProcess, 0) != 0 }
    for number in 0..<100 {
      store.set(Int64(number), forKey: "alone")
      checks.expect(store.longLong(forKey: "alone") == Int64(number))
      checks.expect(store.synchronize())
    }
    // The directory's node is gone; this program takes it over, and nothing fails meanwhile.
    checks.expect(store.synchronize())
    checks.expect(store.string(forKey: "answer") == "me")
  }

  private var hostProcess: pid_t {
    pid_t(ProcessInfo.processInfo.environment["HOST_PROCESS"] ?? "") ?? 1
  }
}
