import KithCrypto
import Testing

@testable import KithCore

/// The answer to one `Have` is one batch: applied, counted and passed on in one step
/// (`Docs/Protocol.md`, "Batch").
@Suite struct BatchTests {
  /// A device that has been away while another published several change sets, which one batch of
  /// several messages carries; and what handing in each message did.
  private func catchUp(
    policy: Policy, seed: UInt64, _ missed: [[KithCore.Operation]],
    before: [KithCore.Operation] = []
  ) throws -> (world: TestWorld, steps: [[Effect]]) {
    let world = try TestWorld(devices: 3, seed: seed, policy: policy)
    world.connectAll()
    world.settle()
    if !before.isEmpty { world.write(before, on: 0) }
    world.settle()
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    for operations in missed { world.write(operations, on: 0) }
    world.settle()
    world.connect(0, 2)
    let messages = Self.answers(to: world)
    var steps: [[Effect]] = []
    let session = try #require(world.links[[0, 2]]?.ends[0].session)
    for message in messages {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      steps.append(
        world.devices[2].replica.handle(.received(session, inbound), at: world.instant(of: 2)))
    }
    return (world, steps)
  }

  /// Delivers until device 0 has answered, and takes its batch out of the pipe.
  private static func answers(to world: TestWorld) -> [[UInt8]] {
    func isBatch(_ message: [UInt8]) -> Bool {
      if case .batch? = InboundMessage(decoding: message, account: world.account)?.body {
        true
      } else {
        false
      }
    }
    var taken: [[UInt8]] = []
    world.tamper = { from, to, message in
      guard from == 0, to == 2, isBatch(message) else { return message }
      taken.append(message)
      return nil
    }
    world.settle()
    world.tamper = nil
    return taken
  }

  private func views(_ effects: [Effect]) -> [ViewChange] {
    effects.compactMap { if case .view(let change) = $0 { change } else { nil } }
  }

  private func commits(_ effects: [Effect]) -> Int {
    effects.count { if case .persist = $0 { true } else { false } }
  }

  @Test func `a batch of several change sets and messages is one change and one commit`() throws {
    let policy = Policy(totalBytes: 4 << 20, keys: 10, valueBytes: 1 << 20)
    let missed = (0..<4).map { [set("k\($0)", blob(700_000))] }
    let (world, steps) = try catchUp(policy: policy, seed: 150, missed)
    #expect(steps.count == 4)
    for step in steps.dropLast() {
      #expect(views(step).isEmpty)
      #expect(commits(step) == 0)
    }
    let last = try #require(steps.last)
    #expect(views(last).map(\.reason) == [.externalChange])
    #expect(views(last).first?.changes.map(\.key) == ["k0", "k1", "k2", "k3"])
    #expect(commits(last) == 1)
    // One commit holds the change sets and the vector that covers them.
    for case .persist(let mutations) in last {
      #expect(
        mutations.count { if case .put(.store(_, .changeSet), _) = $0 { true } else { false } } == 4
      )
      #expect(
        mutations.count { if case .put(.store(_, .vector), _) = $0 { true } else { false } } == 1)
    }
    #expect(world.view(2).count == 4)
  }

  @Test func `a batch makes one change for each reason, and no state in between shows`() throws {
    // Shown one after the other, the first would hide the second before the third makes room.
    let (_, steps) = try catchUp(
      policy: Policy(totalBytes: 1_000, keys: 8), seed: 151,
      [[set("a", blob(300))], [set("b", blob(300))], [remove("a")], [set("c", blob(300))]],
      before: [set("z", blob(300))])
    let changes = steps.flatMap(views)
    #expect(changes.map(\.reason) == [.externalChange])
    #expect(changes.first?.changes.map(\.key) == ["b", "c"])
  }

  @Test func `a batch is passed on as a batch`() throws {
    let world = try TestWorld(devices: 3, seed: 152)
    world.connect(0, 1)
    world.connect(1, 2)
    world.settle()
    world.disconnect(0, 1)
    for number in 0..<5 { world.write([set("k\(number)", 1)], on: 0, flush: false) }
    world.flush(0)
    world.write([set("later", 1)], on: 0)
    world.devices[2].viewChanges = []
    world.connect(0, 1)
    world.settle()
    #expect(world.devices[2].viewChanges.map(\.changes.count) == [6])
    world.checkConvergence("passed on")
  }
}
