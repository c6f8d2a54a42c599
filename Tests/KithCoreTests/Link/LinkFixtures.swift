import KithCrypto
import Testing

@testable import KithCore

/// Messages and change sets of an account, without a replica.
struct LinkFixture {
  static let store = StoreIdentifier("com.example.Links") ?? { preconditionFailure() }()
  static let other = StoreIdentifier("com.example.Others") ?? { preconditionFailure() }()
  static let time: UInt64 = 1_800_000_000_000

  let fixture: Fixture
  let roster: Roster
  private var keyring = Keyring()

  /// The creator's account; `joined` devices are members, too.
  init(joined: [DeviceKeys] = []) throws {
    fixture = try Fixture()
    var roster = fixture.roster(fixture.records)
    for keys in joined {
      _ = try roster.learn(all: [fixture.certificate(of: keys, by: fixture.creator)])
    }
    self.roster = roster
    keyring.refresh(from: roster, keys: fixture.creator)
  }

  var opener: EntryOpener { EntryOpener(roster: roster, keyring: keyring) }

  static func instant(_ milliseconds: UInt64 = 0) -> Instant {
    Instant(wallMilliseconds: time + milliseconds, monotonicMilliseconds: milliseconds)
  }

  static func peer(
    _ keys: DeviceKeys = deviceKeys(2), process: UInt8 = 1, isDialled: Bool = false,
    isMembershipOnly: Bool = false
  ) -> SessionPeer {
    SessionPeer(
      transportKey: keys.transportPublicKey,
      hello: Hello(
        version: 1, clock: HybridTime(generation: 1, milliseconds: time + 5), isSynchronised: false,
        process: ProcessID(Digest128 { $0[0] = process }), rosterDigest: Blake2b.digest256([]),
        port: 0, device: keys.id),
      isDialled: isDialled, address: "192.0.2.1:4114", isMembershipOnly: isMembershipOnly)
  }

  /// A link that exchanges stores.
  static func exchanging(_ keys: DeviceKeys = deviceKeys(2)) -> Link {
    var link = Link(to: peer(keys), at: instant())
    _ = link.recognise(keys.id)
    _ = link.judge(clocksAgree: true)
    return link
  }

  func chain(of keys: DeviceKeys? = nil) -> ChainID {
    ChainID(device: (keys ?? fixture.creator).id, incarnation: Incarnation(rawValue: 1))
  }

  /// A change set with one value of so many bytes.
  mutating func changeSet(
    _ sequence: UInt64, by author: DeviceKeys? = nil, bytes: Int = 10
  ) throws -> ChangeSet {
    let author = author ?? fixture.creator
    let epoch = try #require(keyring.current)
    let certificate = try #require(roster.certificate(of: fixture.creator.id))
    let shared = keyring.sharedBox(epoch: epoch.id, author: certificate)
    let box = try #require(shared)
    let clock = HybridTime(generation: 1, milliseconds: Self.time + sequence)
    let entry = Entry(
      key: Key("k\(sequence)"), stamp: Stamp(clock: clock, device: author.id),
      content: .value(try EncodedValue(.string(String(repeating: "v", count: bytes)))),
      claim: Claim(clock: clock, device: author.id, group: 0))
    var random = SeededEntropy(seed: sequence)
    let sealer = Sealer(
      box: box, storeTag: epoch.storeTag(of: Self.store), epoch: epoch.id,
      chain: chain(of: author), account: fixture.account, keys: author)
    return sealer.seal(
      [entry.plaintext()], sequence: sequence, clock: clock, noncePrefix: random.draw())
  }

  /// The creator's log of change sets 1 through `count`, all covered.
  mutating func log(_ count: UInt64, bytes: Int = 10) throws -> ChangeSetLog {
    var log = ChangeSetLog()
    for sequence in 1...count { log.insert(try changeSet(sequence, bytes: bytes)) }
    _ = log.cover(chain(), through: count)
    return log
  }

  /// The one part of a batch.
  func part(
    _ changeSets: [ChangeSet] = [], of store: StoreIdentifier = store, answers: UInt64 = 0,
    hasMore: Bool = false
  ) throws -> BatchPart {
    var message = WireMessage()
    message.batch.store = store.rawValue
    message.batch.answers = answers
    message.batch.more = hasMore
    message.batch.changeSets = changeSets.map(\.wire)
    let inbound = InboundMessage(decoding: message.encodedBytes(), account: fixture.account)
    guard case .batch(let part)? = inbound?.body else { throw BrokenFixture() }
    return part
  }

  func bounds(authorBytes: Int = 1 << 20, elsewhere: Int = 0) -> BatchBounds {
    BatchBounds(
      own: deviceKeys(9).id, roster: roster, authorBytes: authorBytes, elsewhereBytes: elsewhere)
  }

  static func have(
    _ vector: [ChainID: UInt64] = [:], digest: Digest256? = nil, policy: Policy = .standard,
    isAwaited: Bool = false
  ) -> StoreHave {
    StoreHave(
      store: store, vector: vector, digest: digest, policy: policy, isAwaited: isAwaited)
  }
}

struct BrokenFixture: Error {}
