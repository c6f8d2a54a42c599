internal import KithCore
public import KithCrypto

extension Accounts {
  /// The devices that are members only through another.
  ///
  /// They are revoked with it, except those that ``revoke(_:keeping:)`` keeps.
  ///
  /// - Returns: The devices, ascending; none while nobody is signed in.
  /// - Throws: ``KithError`` as ``status()`` does.
  /// - Complexity: O(*n*) in the account's records.
  public func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    try await seated().account?.dependents(of: device) ?? []
  }

  /// Renames a device for all devices of the account.
  ///
  /// Durable on return; other devices learn it when they meet.
  ///
  /// ```swift
  /// try await accounts.rename(device.id, to: "studio")
  /// ```
  ///
  /// - Parameters:
  ///   - device: This device or another of ``status()``.
  ///   - name: 1 to 64 bytes of UTF-8, without control or unseen characters. A name that looks like
  ///     another member's is refused.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidName`,
  ///   `invalidDevice`, `revoked`, `closed`, `notRunning`, `control` or a storage code.
  public func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    try await account().rename(device, to: name)
  }

  /// Removes a device from the account for ever.
  ///
  /// Its signatures stop counting, and it cannot read later writes. The writes that it made before
  /// stay. Durable on return; other devices learn it when they meet.
  ///
  /// ```swift
  /// let others = try await accounts.dependents(of: lost.id)
  /// try await accounts.revoke(lost.id, keeping: Set(others))
  /// ```
  ///
  /// - Parameters:
  ///   - device: Another device.
  ///   - staying: Those of ``dependents(of:)`` that stay; the others are revoked too. This device
  ///     always stays.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `invalidDevice`, `revoked`,
  ///   `closed`, `notRunning`, `control` or a storage code.
  public func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    try await account().revoke(device, keeping: staying)
  }

  func account() async throws(KithError) -> any NodeAccess {
    if let account = try await seated().account { return account }
    throw KithError(
      .missing, "Nobody is signed in here. Create an account or join one first.",
      path: configuration.directory)
  }

  /// The node of the stores, for the requests of commands.
  package var nodeAccess: any NodeAccess {
    get async throws(KithError) { try await seated().node }
  }

  /// The node of the stores, after a change of it that goes on; also as `account` if somebody is
  /// signed in.
  func seated() async throws(KithError) -> (node: any NodeAccess, account: (any NodeAccess)?) {
    let now = await BlockingThread.run {
      self.switchLock.withLock { _ in self.state.withLock { $0 } }
    }
    if now.isClosed { throw .closedNode }
    let node: any NodeAccess =
      switch now.active.kind {
      case .own(let node): node
      case .attached(let node): LocalClient(directory: node.directory)
      }
    return (node, now.active.location == .signedOut ? nil : node)
  }
}
