import Foundation
import Kith
import UbiquitousKeyValueStore

/// Whole programs on the store that the environment names.
@MainActor struct Programs {
  let checks: Checks

  private var store: NSUbiquitousKeyValueStore { .default }

  /// Leaves something for the next process.
  func first() {
    store.set("kept", forKey: "kept")
    checks.expect(store.synchronize())
    checks.expect(NSUbiquitousKeyValueStore().string(forKey: "kept") == "kept")
    checks.expect(NSUbiquitousKeyValueStore() != .default)
    checks.expect(FileManager.default.ubiquityIdentityToken == nil)
  }

  /// Finds what the process before left.
  func again() {
    checks.expect(store.string(forKey: "kept") == "kept")
    checks.expect(store.synchronize())
  }

  /// Writes, and ends without synchronising: at once, or when the store is served already.
  func leave(_ round: String) {
    store.set(true, forKey: "left\(round)")
    if let number = Int(round), number % 2 == 0 {
      RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
      store.set(true, forKey: "late\(round)")
    }
    exit(0)
  }

  /// Finds what the programs before left.
  func left(_ rounds: String) {
    for round in 1...(Int(rounds) ?? 0) {
      checks.expect(store.bool(forKey: "left\(round)"), "left\(round)")
      if round % 2 == 0 { checks.expect(store.bool(forKey: "late\(round)"), "late\(round)") }
    }
  }

  /// Nothing says which store is meant.
  func unconfigured() {
    let before = store.longLong(forKey: "runs")
    store.set(before + 1, forKey: "runs")
    checks.expect(!store.synchronize())
    checks.expect(store.longLong(forKey: "runs") == before + 1)
    print("run \(before + 1)")
  }

  /// Code names the store, once; the environment names the directory.
  func code() throws {
    let early = NSUbiquitousKeyValueStore.default
    try UbiquityBootstrap.configure(storeIdentifier: "com.example.Code")
    checks.expect(early.synchronize())
    do {
      try UbiquityBootstrap.configure(storeIdentifier: "com.example.Late")
      checks.expect(false, "configured late")
    } catch {
      checks.expect(error.code == .alreadyInUse)
    }
    checks.expect(try UbiquityBootstrap.accounts.signedIn == nil)
    let directory = ProcessInfo.processInfo.environment["KITH_DIRECTORY"]
    checks.expect(try UbiquityBootstrap.accounts.configuration.directory == directory)
    let same = try UbiquityBootstrap.accounts.store("com.example.Code")
    early.set("a", forKey: "k")
    checks.expect(same.value(forKey: "k") == "a")
  }

  /// The directory cannot be used.
  func unusable() {
    store.set("a", forKey: "k")
    checks.expect(store.string(forKey: "k") == "a")
    for _ in 0..<100 { checks.expect(!store.synchronize()) }
    do {
      _ = try UbiquityBootstrap.accounts
      checks.expect(false, "opened")
    } catch {}
  }
}
