package import KithCore

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// A request to a node, by the command line or by another program of the host.
///
/// | request | answer | events before it |
/// | --- | --- | --- |
/// | `hello` | `hello` | |
/// | `values` | `values` | |
/// | `commit` | `done`, once it is durable | |
/// | `status`, `usage`, `hidden`, `refusals` | the same name | |
/// | `dependents` | `devices` | |
/// | `acceptLoss`, `acceptTime`, `rename`, `revoke` | `done`, once it is durable | |
/// | `synchronize` | `synchronized`, at the timeout at the latest | |
/// | `watch` | none | `values`, then a `change` each |
/// | `invite` | `joined` | `invitation`, then `candidate`, which `decide` answers |
///
/// Only a program that is attached uses the rest:
///
/// | request | answer |
/// | --- | --- |
/// | `open` | `values`; from then on each change of the store is sent |
/// | `write` | `done`, once it is accepted, or durable if it asks for that |
/// | `flush` | `done`, once all earlier writes are durable |
/// | `report` | `synchronized`, at once |
/// | `takeRefusals` | `done` |
/// | `adopt` | `keys` whose writes lost, once the rest is durable |
/// | `followProgress` | `done`; from then on the node tells when its status may have changed |
package enum NodeCall: Codable, Sendable {
  /// The first request of a connection.
  case hello(version: Int, attaches: Bool)
  /// All that a store shows.
  case values(store: String)
  /// A durable transaction. It begins the store, if it writes a value.
  case commit(store: String, operations: [KithCore.Operation])
  /// The node's status.
  case status
  /// The devices that are members only through another.
  case dependents(DeviceID)
  /// The bytes and keys that a store uses.
  case usage(store: String)
  /// The writes that the quota hides.
  case hidden(store: String)
  /// The refused transactions. Those up to a number are removed.
  case refusals(store: String, takingThrough: UInt64?)
  /// Accepts that a damaged part of a store is gone.
  case acceptLoss(store: String)
  /// Accepts the time that the device uses.
  case acceptTime
  /// Gives a device another name.
  case rename(DeviceID, name: String)
  /// Throws a device out of the account.
  case revoke(DeviceID, keeping: Set<DeviceID>)
  /// Waits until the other devices have everything.
  case synchronize(store: String, seconds: Double)
  /// All that a store shows, and each change.
  case watch(store: String)
  /// Invites a device.
  case invite(addresses: [String], hasCode: Bool)
  /// Answers a candidate of this connection's invitation.
  case decide(isAccepted: Bool)

  /// Opens a store under limits, and begins it if it is new.
  case open(StoreIdentifier, Policy)
  /// Writes a transaction.
  case write(StoreIdentifier, [KithCore.Operation], gathers: Bool, isDurable: Bool)
  /// Makes all earlier writes durable.
  case flush
  /// Returns the devices that have the writes of this one.
  case report(StoreIdentifier)
  /// Removes refusals up to a number.
  case takeRefusals(StoreIdentifier, through: UInt64)
  /// Takes over the writes that were made while nobody was signed in.
  case adopt(StoreIdentifier, Policy, [LocalWrite])
  /// Tells when the status may have changed.
  case followProgress

  /// Whether it writes to a store, so that it must not be performed twice.
  var isWrite: Bool {
    switch self {
    case .write, .commit, .adopt: true
    default: false
    }
  }

  /// Whether it lasts until something happens.
  var isLasting: Bool {
    switch self {
    case .synchronize, .watch, .invite: true
    default: false
    }
  }
}

/// The answer to a ``NodeCall``.
package enum NodeAnswer: Codable, Sendable {
  case done
  case hello(version: Int, account: AccountID, device: DeviceID)
  case values([KithCore.Operation])
  /// A ``NodeStatus`` in JSON, as `kith status --json` prints it.
  case status(Data)
  case devices([DeviceID])
  case usage(Usage)
  case hidden([LocalHidden])
  case refusals([LocalRefusal])
  case synchronized(SyncReport)
  case keys([String])
  case joined(JoinCandidate)
}

/// News before the answer to a ``NodeCall``.
package enum NodeEvent: Codable, Sendable {
  case values([KithCore.Operation])
  case change(LocalChange)
  case invitation(InvitationEvent)
  case candidate(JoinCandidate)
}
