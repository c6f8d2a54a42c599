public import KithCore
public import KithCrypto
internal import Synchronization

extension Accounts {
  /// The devices of the account that is signed in, also those that were revoked, by id.
  ///
  /// ```swift
  /// for device in try await accounts.devices() where device.isMember {
  ///   list(device.name, device.isConnected)
  /// }
  /// ```
  ///
  /// - Returns: The devices; none while nobody is signed in.
  /// - Throws: ``KithError`` with `closed`. If the node of another program serves the directory and
  ///   does not answer, `notRunning` or `control`.
  /// - Complexity: O(*n* · *s*) in devices and stores.
  public func devices() async throws(KithError) -> [NodeStatus.Device] {
    try await seated().account?.report().devices ?? []
  }

  /// The devices that are members only through another: they are revoked with it, unless
  /// ``revoke(_:keeping:)`` is told to keep them.
  ///
  /// - Returns: The devices, ascending; none while nobody is signed in.
  /// - Throws: ``KithError`` as ``devices()`` does.
  /// - Complexity: O(*n*) in the account's records.
  public func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    try await seated().account?.dependents(of: device) ?? []
  }

  /// Calls a device something else, on all devices of the account. Durable when it returns; told to
  /// the others as they are met.
  ///
  /// ```swift
  /// try await accounts.rename(device.id, to: "studio")
  /// ```
  ///
  /// - Parameters:
  ///   - device: This device or another of ``devices()``.
  ///   - name: 1 to 64 bytes of UTF-8, without control or unseen characters. A name that only looks
  ///     like another member's is refused.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidName`,
  ///   `invalidDevice`, `revoked`, `closed`, `notRunning`, `control` or a storage code.
  public func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    try await account().rename(device, to: name)
  }

  /// Throws a device out of the account, for ever: nothing that it signed counts any more, and it
  /// cannot read later writes. Its own writes stay. Durable when it returns; the others learn of it
  /// as they are met.
  ///
  /// ```swift
  /// let others = try await accounts.dependents(of: lost.id)
  /// try await accounts.revoke(lost.id, keeping: Set(others))
  /// ```
  ///
  /// - Parameters:
  ///   - device: The device, which is not this one.
  ///   - staying: Of ``dependents(of:)`` those that stay; the others are revoked as well. This device
  ///     always stays.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidDevice`, `revoked`,
  ///   `closed`, `notRunning`, `control` or a storage code.
  public func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    try await account().revoke(device, keeping: staying)
  }

  /// The node of the account that is signed in: this program's, or the one that it is attached to.
  func account() throws(KithError) -> any NodeAccess {
    if let account = try seated().account { return account }
    throw KithError(
      .missing, "Nobody is signed in here. Create an account or join one first.",
      path: configuration.directory)
  }

  /// The node behind the stores now; as `account` only if somebody is signed in.
  func seated() throws(KithError) -> (node: any NodeAccess, account: (any NodeAccess)?) {
    let (kind, isSignedIn) = try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      return (state.seat.kind, state.seat.place != .signedOut)
    }
    let node: any NodeAccess =
      switch kind {
      case .own(let node): node
      case .attached(let node): LocalClient(directory: node.directory)
      }
    return (node, isSignedIn ? node : nil)
  }
}
