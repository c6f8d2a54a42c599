internal import KithCore
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
  /// - Throws: ``KithError`` with `closed`, or with `notRunning` or `control` where the node of
  ///   another program serves the directory and does not answer.
  /// - Complexity: O(*n* · *s*) in devices and stores.
  public func devices() async throws(KithError) -> [AccountDevice] {
    guard let account = try seated().account else { return [] }
    if let node = account as? Node { return node.devices() }
    var devices: [AccountDevice] = []
    for report in try await account.deviceReports() {
      guard let device = AccountDevice(report) else { throw .malformedControl }
      devices.append(device)
    }
    return devices
  }

  /// The devices that are members only through another: they are revoked with it, unless
  /// ``revoke(_:keeping:)`` is told to keep them.
  ///
  /// - Returns: The devices, ascending; none while nobody is signed in.
  /// - Throws: ``KithError`` as ``devices()`` does.
  /// - Complexity: O(*n*) in the account's records.
  public func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    guard let account = try seated().account else { return [] }
    if let node = account as? Node { return node.dependents(of: device) }
    let report = try await account.deviceReports().first { $0.id == device.hex }
    return (report?.dependents ?? []).compactMap(DeviceID.init(hex:))
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

  /// Throws a device out of the account, for ever: nothing that it signed counts any more, it reads
  /// nothing that is written from now on, and what it wrote stays. Durable when it returns; the others
  /// learn of it as they are met.
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

  /// Invites one device into the account that is signed in, by a short code that people read aloud and
  /// type, or by the token: waits for a device that has one of them, asks whether to take it in, and
  /// makes it a member.
  ///
  /// ```swift
  /// try await accounts.invite { event in
  ///   if case .opened(let invitation) = event { await show(invitation.code) }
  /// } onJoinRequest: { candidate in
  ///   await ask("Is \(candidate.fingerprint) on \(candidate.name), too?")
  /// }
  /// ```
  /// An invitation lives in memory only, allows 3 tries and 10 minutes, and takes one device.
  ///
  /// - Parameters:
  ///   - addresses: The hosts that the token names; empty: this host's own addresses.
  ///   - onEvent: Gets the code and the token, and what happens before a device has shown one of them.
  ///   - onJoinRequest: Decides; ask a person to compare the fingerprints.
  /// - Returns: The new device.
  /// - Throws: ``KithError`` with `missing` while nobody is signed in, `pairingCode` (and
  ///   ``KithError/triesLeft`` of 0 where wrong codes ended it), `declined`, `network`, `cancelled`,
  ///   `closed`, `notRunning`, `control` or a storage code.
  @discardableResult
  public func invite(
    addresses: [String] = [],
    onEvent: @escaping @Sendable (InvitationEvent) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    try await account().inviteByCode(
      addresses: addresses, onEvent: onEvent, onJoinRequest: onJoinRequest)
  }

  /// The node of the account that is signed in: this program's, or the one that it is attached to.
  private func account() throws(KithError) -> any StoreAccess {
    if let account = try seated().account { return account }
    throw KithError(
      .missing, "Nobody is signed in here. Create an account or join one first.",
      path: configuration.directory)
  }

  /// The node behind the stores now; as `account` only if somebody is signed in.
  func seated() throws(KithError) -> (node: any StoreAccess, account: (any StoreAccess)?) {
    let (kind, isSignedIn) = try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      return (state.seat.kind, state.seat.place != .signedOut)
    }
    let node: any StoreAccess =
      switch kind {
      case .own(let node): node
      case .attached(let attachment): ControlClient(directory: attachment.directory)
      }
    return (node, isSignedIn ? node : nil)
  }
}
