import Kith
import KithTerminal
import Synchronization

/// Shows progress when the stores are known, then at most every two seconds.
final class JoinProgressLine: Sendable {
  private static let pause = Duration.seconds(2)

  private let console: Console
  private let told = Mutex<(stores: Int, at: ContinuousClock.Instant)?>(nil)

  init(_ console: Console) {
    self.console = console
  }

  func show(_ progress: JoinProgress) {
    let isDue = told.withLock { told in
      let isNews = told.map { $0.stores != progress.stores } ?? true
      guard isNews || told.map({ ContinuousClock.now - $0.at >= Self.pause }) == true else {
        return false
      }
      told = (progress.stores, .now)
      return true
    }
    guard isDue else { return }
    guard progress.stores > 0 else { return console.talk("Getting what the account has…") }
    console.talk(
      "Getting what the account has: \(progress.pulledStores) of "
        + "\(Format.count(progress.stores, "store")), "
        + "\(Format.count(progress.changeSets, "change set"))…")
  }
}
