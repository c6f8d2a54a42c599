internal import KithCore

struct FollowedChange {
  let chain: ChainID?
  let sequence: UInt64
  let startedAt: UInt64
  /// The hops to each device; nil: not yet.
  private(set) var hops: [Int?]
  private(set) var duplicates = 0
  private(set) var traffic: [Traffic: SpreadResult.Amount] = [:]
  var everywhereAt: UInt64?
  private var missing: Int

  init(chain: ChainID?, sequence: UInt64, writer: Int, devices: Int, startedAt: UInt64) {
    self.chain = chain
    self.sequence = sequence
    self.startedAt = startedAt
    hops = Array(repeating: nil, count: devices)
    hops[writer] = 0
    missing = devices - 1
  }

  var isEverywhere: Bool { missing == 0 }

  mutating func count(_ kind: Traffic, bytes: Int) {
    traffic[kind, default: .init()].messages += 1
    traffic[kind, default: .init()].bytes += bytes
  }

  mutating func note(
    _ message: InboundMessage, from: Int, to: Int, at now: UInt64, store: StoreIdentifier
  ) {
    guard case .batch(store, let changeSets, _) = message.facts,
      changeSets.contains(where: { $0.chain == chain && $0.reference.sequence == sequence })
    else { return }
    if hops[to] == nil {
      hops[to] = (hops[from] ?? 0) + 1
      missing -= 1
    } else {
      duplicates += 1
    }
  }
}

package struct SpreadResult: Codable, Hashable, Sendable {
  /// Before the session's encryption and padding.
  package struct Amount: Codable, Hashable, Sendable {
    package var messages = 0
    package var bytes = 0
  }

  package struct Range: Codable, Hashable, Sendable {
    package var least: UInt64 = 0
    package var median: UInt64 = 0
    package var most: UInt64 = 0

    package init(_ values: [UInt64] = []) {
      let sorted = values.sorted()
      guard let first = sorted.first, let last = sorted.last else { return }
      (least, median, most) = (first, sorted[sorted.count / 2], last)
    }
  }

  package struct Change: Codable, Hashable, Sendable {
    /// The hops to each device.
    package var hops: Range
    /// Virtual time until all devices had it; nil: some never did.
    package var spreadMilliseconds: UInt64?
    /// Virtual time until its writer knew that; nil: it never did.
    package var knownMilliseconds: UInt64?
    /// Arrivals at a device that had it.
    package var duplicates: Int
    /// Batches of change sets.
    package var changes: Amount
    /// Devices' reports of their own vectors.
    package var progress: Amount
    /// Words, signed and passed on.
    package var words: Amount
    /// Full `Have`s, one in 30 s on every session, and all else.
    package var other: Amount

    init(_ followed: FollowedChange?, knownAt: UInt64?) {
      let start = followed?.startedAt ?? 0
      hops = Range((followed?.hops ?? []).compactMap { $0.map(UInt64.init) }.filter { $0 > 0 })
      spreadMilliseconds = followed?.everywhereAt.map { ($0 - start) / 1_000 }
      knownMilliseconds = knownAt.map { ($0 - start) / 1_000 }
      duplicates = followed?.duplicates ?? 0
      changes = followed?.traffic[.changes] ?? Amount()
      progress = followed?.traffic[.progress] ?? Amount()
      words = followed?.traffic[.words] ?? Amount()
      other = followed?.traffic[.other] ?? Amount()
    }
  }

  package var setup: Spread.Setup
  /// Sessions of a device.
  package var connections = Range()
  package var changes: [Change] = []

  init(setup: Spread.Setup) {
    self.setup = setup
  }
}
