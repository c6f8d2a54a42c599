public import KithCore
internal import KithCrypto
internal import KithStorage

extension AccountID {
  /// Reads all bytes in hexadecimal; nil for any other text.
  package init?(hex: String) {
    guard let digest = Digest256(hex: hex) else { return nil }
    self.init(digest)
  }
}

extension Accounts {
  private static let longestFollow = Duration.seconds(30)

  /// An account whose device is on this host.
  public struct KnownAccount: Sendable, Hashable {
    /// The account's id.
    public var account: AccountID
    /// The directory of its device.
    public var directory: String
    /// Whether it is signed in.
    public var isSignedIn: Bool
  }

  /// The accounts that can be signed in on this host, in the order of the first time.
  ///
  /// - Throws: ``KithError`` with `damaged` or another storage code.
  public var known: [KnownAccount] {
    get throws(KithError) {
      directory.known(try registry())
    }
  }

  /// Creates an account, and signs in to it; the writes made so far are its first data.
  ///
  /// - Parameters:
  ///   - name: This device's name for people, 1 to 64 bytes.
  ///   - show: Gets the account and its recovery key before the account exists. So even if the
  ///     program ends, no account exists whose key nobody has seen. If it throws, no account is
  ///     created.
  /// - Returns: The account, and its recovery key, which is stored nowhere: show it once, to be
  ///   written down. Both are returned even if the node does not follow in time; ``signedIn`` says
  ///   whether the stores are the account's.
  /// - Throws: ``KithError`` with `invalidName`, `passphrase` or a storage code; then no account
  ///   was created.
  @discardableResult
  public func createAccount(
    name: String,
    showing show:
      @escaping @Sendable (_ summary: AccountSummary, _ recoveryKey: String) throws(KithError)
      -> Void = { (_, _) throws(KithError) in }
  ) async throws(KithError) -> (summary: AccountSummary, recoveryKey: String) {
    try await adoptBeforeLeaving()
    let (location, made) = try await BlockingThread.run { () throws(KithError) in
      let location = try self.directory.newLocation()
      let made = try Node.createAccount(
        directory: self.directory.directory(of: location), name: name,
        passphrase: self.configuration.passphrase?(), showing: show)
      do throws(KithError) {
        try self.directory.note(location, made.summary, self.accountHere)
      } catch {
        self.directory.discard(location)
        throw error
      }
      return (location, made)
    }
    do throws(KithError) {
      try await arrive(at: location)
    } catch {
      // Throwing would lose the recovery key.
      configuration.logger.error(
        "the account is begun, and its stores are not shown yet",
        metadata: ["code": "\(error.code)"])
    }
    return made
  }

  /// Joins an account by a short code or a token, with a new device, and signs in to it.
  ///
  /// On return the stores show what the inviting device has, and the local keys that the account
  /// lacked. If a store came only in part, the rest comes later: see
  /// ``JoinProgress/partialStores``.
  ///
  /// ```swift
  /// try await accounts.signIn(code: code, name: "desktop") { inviter, fingerprint in
  ///   await ask("Does \(inviter.name) show \(inviter.fingerprint) and \(fingerprint)?")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - code: The code of the inviting device, or its token.
  ///   - name: This device's name for people, 1 to 64 bytes.
  ///   - address: The inviter's address, `host` or `host:port`; nil: the token's, or found on the
  ///     LAN.
  ///   - onProgress: Gets the progress now and then.
  ///   - confirm: Gets the inviter and this device's fingerprint: have people compare them, and
  ///     return whether to join. A token alone is proof enough for a program that trusts its source.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`, `cancelled`,
  ///   `timedOut`, `tooManyStores` or a storage code. The device has joined nevertheless, and must not
  ///   join again, if its inviter or the stores do not follow in time (`timedOut`), or if the account
  ///   does not take the writes made here while nobody was signed in. Then ``signedIn`` is the
  ///   account, at the latest once the stores follow. Otherwise nobody was signed in or out.
  @discardableResult
  public func signIn(
    code: String, name: String, address: String? = nil,
    onProgress: @escaping @Sendable (JoinProgress) -> Void = { _ in },
    confirm: @escaping @Sendable (_ inviter: PairingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    try await adoptBeforeLeaving()
    let joined = try await directory.join(
      accountHere: { self.signedIn },
      arriving: { location async throws(KithError) in try await self.arrive(at: location) }
    ) { directory, made throws(KithError) in
      let passphrase = try await BlockingThread.run { () throws(KithError) in
        try self.configuration.passphrase?()
      }
      return try await Node.join(
        directory: directory, name: name, code: code, address: address,
        passphrase: passphrase, onProgress: onProgress, made: made,
        confirm: confirm)
    }
    try joined.arrival.get()
    return joined.summary
  }

  /// Signs in to an account whose device is on this host.
  ///
  /// ```swift
  /// for known in try accounts.known where !known.isSignedIn { offer(known.account) }
  /// try await accounts.signIn(to: chosen)
  /// ```
  ///
  /// - Throws: ``KithError`` with `missing` if there is none, `timedOut`, `tooManyStores` or a storage
  ///   code. If its device cannot be opened, nothing has changed. The account is signed in if it only
  ///   does not take the writes made here while nobody was; see ``signOut()``.
  public func signIn(to account: AccountID) async throws(KithError) {
    try await move { registry throws(KithError) in
      let location = try self.directory.location(of: account, in: registry)
      if self.state.withLock({ $0.active.location }) != location {
        try Self.checkOpening(location, in: self.directory, self.configuration)
      }
      return location
    }
  }

  /// Signs out: the stores show local data from here on.
  ///
  /// The account's data stays here, and on its other devices. So do writes made while nobody was
  /// signed in that the account cannot adopt: they show again.
  ///
  /// - Throws: ``KithError`` with `timedOut` or a storage code.
  public func signOut() async throws(KithError) {
    try await move { _ in .signedOut }
  }

  /// The directory of the device whose stores programs see. The first write creates that of the
  /// local stores.
  package static func deviceDirectory(in path: String) throws(KithError) -> String {
    try AccountsDirectory(path: path).deviceDirectory()
  }

  package static func isSignedOut(in path: String) throws(KithError) -> Bool {
    try AccountsDirectory(path: path).location() == .signedOut
  }

  // MARK: Moving

  private func registry() throws(KithError) -> AccountsDirectory.Registry {
    try directory.registry(accountHere)
  }

  /// The account of the device in the directory itself, which is signed in if there is no registry.
  private func accountHere() throws(KithError) -> AccountID? { signedIn }

  private func move(
    to choose:
      @escaping @Sendable (AccountsDirectory.Registry) throws(KithError)
      -> AccountsDirectory.Location
  ) async throws(KithError) {
    let (location, registry) = try await BlockingThread.run { () throws(KithError) in
      let registry = try self.registry()
      return (try choose(registry), registry)
    }
    try await adoptBeforeLeaving(for: location)
    try await BlockingThread.run { () throws(KithError) in
      try self.directory.note(location, registry)
    }
    try await arrive(at: location)
  }

  /// Has the account adopt the pending writes that it can, unless it stays; otherwise the next account
  /// would get them.
  private func adoptBeforeLeaving(
    for next: AccountsDirectory.Location? = nil
  ) async throws(KithError) {
    try await BlockingThread.run { () throws(KithError) in
      // After a switch that goes on.
      let location = self.switchLock.withLock { _ in self.state.withLock { $0.active.location } }
      guard location != next else { return }
      do throws(KithError) {
        try self.finishAdoption(isLeaving: true)
      } catch {
        // Signing out is the way back from an account that can never adopt them.
        guard next == .signedOut, !Self.passingTroubles.contains(error.code) else { throw error }
      }
    }
  }

  /// Blocks until the stores are those of the location, and the account has adopted all local writes.
  private func arrive(at location: AccountsDirectory.Location) async throws(KithError) {
    switched.raise()
    let isTaken = try await BlockingThread.run { () throws(KithError) in
      guard try self.follow(isServing: false) else { return false }
      try self.finishAdoption()
      return true
    }
    if isTaken { return }
    let hasSwitched = await switched.wait(timeout: Self.longestFollow) {
      self.state.withLock { state in
        state.active.location == location && !state.isSwitching
          && state.pendingAdoption.map { $0.retryAt == nil } ?? true
      }
    }
    if let pending = state.withLock({ $0.active.location == location ? $0.pendingAdoption : nil }) {
      throw pending.error
    }
    if hasSwitched { return }
    if Task.isCancelled { throw KithError(.cancelled, "The wait was cancelled.") }
    throw KithError(.timedOut, "The node did not follow in time. See its log.")
  }

  /// Opens and closes a device that is to be signed in, so that nobody signs in to one that cannot be
  /// used: local writes would be out of reach. A device under a passphrase is only looked at, because
  /// nobody may be there to give the passphrase.
  static func checkOpening(
    _ location: AccountsDirectory.Location, in directory: AccountsDirectory,
    _ configuration: Configuration
  ) throws(KithError) {
    let path = directory.directory(of: location)
    let isLocked = try Node.isUnderPassphrase(directory: path)
    if let file = DeviceDirectory.missingFile(path) {
      throw KithError(
        .damaged,
        "The file is missing or empty, so nobody can sign in to its account. Put it back from a "
          + "backup, or join the account anew.", path: file)
    }
    guard !isLocked else { return }
    var configuration = configuration
    configuration.insistsOnItsOwn = false
    configuration.logger.logLevel = .critical
    try ActiveDevice(at: location, in: directory, configuration).close()
  }
}
