package import FoundationEssentials
package import KithCore
internal import NIOCore

/// A request to a node, by the command line or by another program of the host.
///
/// Unless a case names its answer, that is the case of the same name, or else `done`, once all is
/// durable.
package enum NodeCall: Codable, Sendable {
  /// The first request of a connection.
  case hello(version: Int, attaches: Bool)
  /// The shown values, or that of one key. Answer: `shown`.
  case values(store: String, key: String? = nil)
  /// Creates the store, if it writes a value. Refused with `unexpectedValue` unless the store
  /// shows the expected values.
  case commit(
    store: String, operations: [KithCore.Operation], expecting: ExpectedValues = .none)
  /// Writes transactions, each accepted or refused alone, with one flush of the disk. Creates the
  /// store with the policy, if it writes a value. Answer: `written`.
  case commitEach(store: String, [[KithCore.Operation]], policy: Policy = .standard)
  case status
  /// Answer: `devices`.
  case dependents(DeviceID)
  case usage(store: String)
  case hidden(store: String)
  /// Removes those up to a number; answered at once.
  case refusals(store: String, takingThrough: UInt64?)
  /// The values that a key, or any, showed before, newest first.
  case history(store: String, key: String?, limit: Int)
  /// Writes past values. Answer: `history` with them, or empty if none are kept.
  case undo(store: String, Undo)
  case acceptLoss(store: String)
  case acceptTime
  /// The device's own carriers, then the account's.
  case carriers
  /// Adds a carrier, or replaces its settings.
  case keepCarrier(CarrierSettings)
  case removeCarrier(CarrierSettings)
  /// Begins a turn on each carrier, which publishes even if the time is not certain.
  case lookAtCarriers
  /// Connects to `host:port` from now on, until the node stops. Answer: `met`, when the first call
  /// has ended, or after ``LocalLimits/meeting``.
  case meet(address: String)
  /// Stops calling an address, and forgets it.
  case forget(address: String)
  case rename(DeviceID, name: String)
  case revoke(DeviceID, keeping: Set<DeviceID>)
  /// Answer: `syncReport`, once so many devices (nil: all) have everything, or at the timeout.
  case waitUntilSynced(store: String, seconds: Double, devices: Int? = nil)
  /// Events: `values`, then a `change` each, until the end.
  case watch(store: String)
  /// Events: `invitation`, then `wrongCode` each, and `candidate`. Answer: `joined`.
  case invite(addresses: [String], hasCode: Bool)
  /// Sent by a node that insists on the directory. After the answer, the node that has it ends, and
  /// its program attaches to the next one. Refused with `inUse` by a node that insists, too.
  case yield
  /// Answers a candidate of this connection's invitation; has no answer itself.
  case decide(isAccepted: Bool)

  /// Only attached programs send this and the requests below. Creates the store if it is new.
  /// Answer: `values`, then each change of the store is sent.
  case open(StoreIdentifier, Policy)
  /// Answer: `done`, once it is accepted; `commit` waits until it is durable. Refused as `commit` is.
  case write(StoreIdentifier, [KithCore.Operation], expecting: ExpectedValues)
  /// Writes transactions as ``StoreService/write(_:each:)`` does. Answer: `written`, once each is
  /// accepted or refused.
  case writeEach(StoreIdentifier, [[KithCore.Operation]])
  case flush
  case syncReport(StoreIdentifier)
  /// Answer: the `keys` whose writes lost, once the rest is durable.
  case adopt(StoreIdentifier, Policy, [LocalWrite])
  /// Answer: `done`; then the node tells when its status may have changed. Sent once a connection.
  case followProgress

  /// If so, it must not be performed twice.
  var isWrite: Bool {
    switch self {
    case .write, .writeEach, .commit, .commitEach, .undo, .adopt: true
    default: false
    }
  }

  /// How long the program waits for the answer; nil: until the connection ends.
  var timeout: Duration? {
    guard case .waitUntilSynced(_, let seconds, _) = self else { return nil }
    return .seconds(seconds) + LocalLimits.connect
  }

  /// Whether the node's disk makes a thread wait for the answer.
  var isBlocking: Bool {
    switch self {
    case .flush, .adopt, .acceptLoss, .acceptTime, .rename, .revoke, .forget, .keepCarrier,
      .removeCarrier:
      true
    default: false
    }
  }

  /// Whether a revoked device refuses it, because it would wait, or keep something, in vain.
  var needsMembership: Bool {
    switch self {
    case .invite, .meet, .keepCarrier: true
    default: false
    }
  }

  var isLasting: Bool {
    switch self {
    case .waitUntilSynced, .watch, .invite, .meet: true
    default: false
    }
  }
}

package enum NodeAnswer: Codable, Sendable {
  case done
  case hello(account: AccountID, device: DeviceID)
  case values([KithCore.Operation])
  /// `isLacking`: a part of the store was damaged on the disk, and is missing.
  case shown([KithCore.Operation], isLacking: Bool)
  /// A ``NodeStatus`` in JSON, as `kith status --json` prints it.
  case status(Data)
  case devices([DeviceID])
  case usage(Usage)
  case hidden([HiddenEntry])
  case refusals([Refusal])
  case history([PastValue])
  case carriers([CarrierSettings])
  case syncReport(SyncReport)
  case keys([String])
  case met(NodeStatus.Address)
  /// How many of the transactions were performed, the first ones, and the errors of the refused.
  case written(count: Int, refused: [Int: KithError])
  case joined(PairingDevice)
}

package enum NodeEvent: Codable, Sendable {
  case values([KithCore.Operation])
  case change(LocalChange)
  case invitation(OpenInvitation)
  case wrongCode(triesLeft: Int)
  case candidate(PairingDevice)
}

/// A message on the control socket, framed by a 4-byte length, most significant byte first. It is
/// an ``EncodedValue``, so bytes stay bytes, and one decoder reads programs' values and messages.
///
/// The length is checked first; time and memory are proportional to the bytes that came.
protocol LocalMessage: Codable, Sendable {
  static var limit: Int { get }
}

extension LocalMessage {
  /// Throws `valueTooLarge` if the message is too long.
  func frame() throws(KithError) -> ByteBuffer {
    let bytes: [UInt8]
    do {
      bytes = try EncodedValue(PropertyListValue(encoding: self)).bytes
    } catch {
      throw KithError(.control, "The message cannot be encoded: \(error)", cause: error)
    }
    guard bytes.count <= Self.limit else {
      throw KithError(
        .valueTooLarge,
        "This takes \(bytes.count) bytes on its way to the node; at most \(Self.limit) are possible. "
          + "Split it.")
    }
    var frame = ByteBuffer()
    frame.reserveCapacity(bytes.count + 4)
    frame.writeInteger(UInt32(bytes.count))
    frame.writeBytes(bytes)
    return frame
  }

  /// Decodes a frame's bytes after the length; nil if they are malformed.
  init?(_ bytes: ByteBuffer) {
    guard let value = try? EncodedValue(trusting: Array(bytes.readableBytesView)).decoded(),
      let message = try? value.decoded(as: Self.self)
    else { return nil }
    self = message
  }
}

struct LocalRequest: LocalMessage {
  static let limit = LocalLimits.requestBytes
  var id: Int
  var call: NodeCall
}

struct LocalReply: LocalMessage {
  enum Content: Codable, Sendable {
    case answer(NodeAnswer)
    case failure(KithError)
    case event(NodeEvent)
    /// The changes of whole steps of the core, to show at once. A write's changes come before its
    /// answer.
    case changes(StoreIdentifier, [LocalChange])
    /// The status may have changed.
    case progress
    /// The node ends. All that it accepted is durable; it did not perform unanswered requests. If
    /// it yields, another process opens the directory next.
    case goodbye(isYielding: Bool)
  }

  static let limit = LocalLimits.replyBytes
  /// The request's id; 0 for `changes`, `progress` and `goodbye`.
  var id: Int
  var content: Content
}

/// Splits the stream into frames, without their lengths.
struct FrameDecoder: NIOSingleStepByteToMessageDecoder {
  typealias InboundOut = ByteBuffer

  let limit: Int

  func decode(buffer: inout ByteBuffer) throws -> ByteBuffer? {
    guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else {
      return nil
    }
    guard length <= limit else { throw KithError.malformedControl }
    guard buffer.readableBytes >= 4 + Int(length) else { return nil }
    buffer.moveReaderIndex(forwardBy: 4)
    return buffer.readSlice(length: Int(length))
  }

  func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> ByteBuffer? {
    try decode(buffer: &buffer)
  }
}

extension ChangeReason: Codable {}

extension Sequence<KithCore.Operation> {
  var values: [Key: PropertyListValue] {
    var values: [Key: PropertyListValue] = [:]
    // The values were checked when they came in.
    for entry in self { values[Key(entry.key)] = entry.value.flatMap { try? $0.decoded() } }
    return values
  }
}

extension [KithCore.Operation] {
  /// Nil removes a key.
  package static func encoding(
    _ writes: [(key: String, value: PropertyListValue?)]
  ) throws(KithError) -> Self {
    try writes.map { write throws(KithError) in try .encoding(write.value, forKey: write.key) }
  }
}

extension [Key: PropertyListValue] {
  var operations: [KithCore.Operation] {
    get throws(KithError) {
      var operations: [KithCore.Operation] = []
      operations.reserveCapacity(count)
      for (key, value) in sorted(by: { $0.key < $1.key }) {
        operations.append(try .encoding(value, forKey: key.text))
      }
      return operations
    }
  }
}

/// A ``KeyValueStore.Change`` without the old values.
package struct LocalChange: Codable, Sendable {
  var reason: ChangeReason
  var values: [KithCore.Operation]
  var superseded: [String]
  var isJoined: Bool

  init(_ change: KeyValueStore.Change) throws(KithError) {
    reason = change.reason
    values = []
    for item in change.items { values.append(try .encoding(item.new, forKey: item.key.text)) }
    superseded = change.superseded.map(\.text)
    isJoined = change.isJoined
  }

  /// The change for a consumer that was shown these values; updates them.
  func change(of shown: inout [Key: PropertyListValue]) -> KeyValueStore.Change {
    var items: [KeyValueStore.Change.Item] = []
    for entry in values {
      let key = Key(entry.key)
      let new = entry.value.flatMap { try? $0.decoded() }
      items.append(KeyValueStore.Change.Item(key: key, old: shown[key], new: new))
      shown[key] = new
    }
    return KeyValueStore.Change(
      reason: reason, items: items, superseded: superseded.map { Key($0) }, isJoined: isJoined)
  }

  func viewChange(of store: StoreIdentifier) -> ViewChange {
    ViewChange(
      store: store, reason: reason == .ownWrite ? nil : reason,
      changes: values.map { (Key($0.key), $0.value) },
      superseded: superseded.map { Key($0) })
  }
}

extension NodeAnswer {
  /// The outcomes of ``StoreService/write(_:each:)``: a message has no nil.
  static func written(_ outcomes: [KithError?]) -> NodeAnswer {
    var refused: [Int: KithError] = [:]
    for (index, error) in outcomes.enumerated() { refused[index] = error }
    return .written(count: outcomes.count, refused: refused)
  }
}

extension ArraySlice<[KithCore.Operation]> {
  /// The first transactions that go in one message: at least one.
  var message: Self {
    var bytes = 0
    return prefix(LocalLimits.transactions).prefix { operations in
      let isFirst = bytes == 0
      bytes += operations.reduce(1) { $0 + 64 + $1.key.utf8.count + ($1.value?.size ?? 0) }
      return isFirst || bytes <= LocalLimits.transactionBytes
    }
  }
}

extension KithError {
  static let malformedControl = KithError(
    .control, "The other side of the control socket sent something else than agreed.")
}
