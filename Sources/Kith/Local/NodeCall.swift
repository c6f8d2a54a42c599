package import FoundationEssentials
package import KithCore

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
  /// Writes the key's newest past value, or the one with a number. Answer: `history` with it, or
  /// empty if there is none.
  case undo(store: String, key: String, to: UInt64?)
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
  /// Answer: `done`, once it is accepted; `commit` waits until it is durable.
  case write(StoreIdentifier, [KithCore.Operation])
  /// Writes transactions as ``StoreService/write(_:each:)`` does. Answer: `written`, once each is
  /// accepted or refused.
  case writeEach(StoreIdentifier, [[KithCore.Operation]])
  case flush
  case syncReport(StoreIdentifier)
  /// Answer: the `keys` whose writes lost, once the rest is durable.
  case adopt(StoreIdentifier, Policy, [LocalWrite])
  /// Answer: `done`; then the node tells when its status may have changed.
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
