import Kith
import Testing

@testable import UbiquitousKeyValueStore

@Suite struct PatienceTests {
  private static let closed = KithError(.closed, "gone")

  @Test func `what is about to be replaced is tried until it is`() throws {
    var tries = 0
    try Patience().attempt { () throws(KithError) in
      tries += 1
      if tries < 4 { throw Self.closed }
    }
    #expect(tries == 4)
  }

  @Test func `another failure is told at once`() {
    var tries = 0
    #expect(throws: KithError.self) {
      try Patience().attempt { () throws(KithError) in
        tries += 1
        throw KithError(.diskFull, "full")
      }
    }
    #expect(tries == 1)
  }

  @Test func `who waited in vain waits no more, until something succeeds`() throws {
    let patience = Patience(limit: .milliseconds(20))
    var tries = 0
    func failing() throws(KithError) {
      tries += 1
      throw Self.closed
    }
    #expect(throws: KithError.self) { try patience.attempt(failing) }
    #expect(tries > 1)
    tries = 0
    #expect(throws: KithError.self) { try patience.attempt(failing) }
    #expect(tries == 1)
    try patience.attempt { () throws(KithError) in }
    tries = 0
    #expect(throws: KithError.self) { try patience.attempt(failing) }
    #expect(tries > 1)
  }
}
