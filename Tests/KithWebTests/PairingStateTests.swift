import Kith
import KithTestSupport
import Testing

@testable import KithWeb

@Suite(.timeLimit(.minutes(2))) struct PairingStateTests {
  /// At the end of `kith web` the pairing is cancelled while the pages that follow it go.
  @Test func `watchers that end while the state changes hold up nobody`() async throws {
    let directory = try TestDirectory()
    let accounts = try Accounts(Accounts.Configuration(directory: directory.child("a")))
    let pairing = Pairing(accounts)
    for _ in 0..<100 {
      let watching = AsyncStream<Void>.makeStream()
      let watchers = Task {
        await withDiscardingTaskGroup { group in
          for _ in 0..<40 {
            group.addTask {
              for await () in pairing.changed { watching.continuation.yield() }
            }
          }
        }
      }
      var heard = watching.stream.makeAsyncIterator()
      for _ in 0..<40 { await heard.next() }
      async let changes: Void = { for _ in 0..<40 { pairing.cancel() } }()
      watchers.cancel()
      await watchers.value
      await changes
    }
    try accounts.close()
  }
}
