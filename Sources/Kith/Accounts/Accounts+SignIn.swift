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
        try self.directory.note(location, made.summary, self.first)
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
      first: { self.signedIn },
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
    try directory.registry(first)
  }

  /// The account of the device in the directory itself, for the first registry.
  private func first() throws(KithError) -> AccountID? { signedIn }

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
}

/// Signing in and out at the command line. Programs that have the directory open follow the
/// registry. Local writes are those made while nobody was signed in.
extension Accounts {
  /// As ``known``; makes nothing.
  package static func known(_ configuration: Configuration) async throws(KithError)
    -> [KnownAccount]
  {
    try await BlockingThread.run { () throws(KithError) in
      let directory = AccountsDirectory(path: configuration.directory)
      return directory.known(try registry(directory, configuration))
    }
  }

  /// The noted accounts of ``known``, at once: it opens no device, and finishes no removal. Nil if
  /// none was ever noted; then the account of the directory itself, if any, is the only one.
  package static func noted(in path: String) throws(KithError) -> [KnownAccount]? {
    let directory = AccountsDirectory(path: path)
    guard var registry = try directory.read() else { return nil }
    registry.devices.removeAll { $0.isLeaving == true }
    return directory.known(registry)
  }

  /// Signs in to an account of ``known``, which has adopted the local writes on return. Returns
  /// whether some of them lost.
  @discardableResult
  package static func signIn(
    to account: KnownAccount, _ configuration: Configuration
  ) async throws(KithError) -> Bool {
    try await BlockingThread.run { () throws(KithError) in
      let directory = AccountsDirectory(path: configuration.directory)
      let registry = try registry(directory, configuration)
      let location = try directory.location(of: account.account, in: registry)
      // Without its list a directory has no location, and nothing to hand over.
      let current = try? directory.location()
      if current != location { try checkOpening(location, in: directory, configuration) }
      if let current, current != location { try adopt(directory, configuration) }
      try directory.note(location, registry)
      let outcome = try adopt(directory, configuration)
      if let error = outcome.error { throw error }
      return outcome.superseded.values.contains { !$0.isEmpty }
    }
  }

  /// Signs out. Returns the account that was signed in, and why it did not adopt the local writes, if
  /// it never can: they stay, and show again. Nil: nobody was signed in, and nothing has changed.
  package static func signOut(
    _ configuration: Configuration
  ) async throws(KithError) -> (account: KnownAccount, unadopted: KithError?)? {
    try await BlockingThread.run { () throws(KithError) in
      let directory = AccountsDirectory(path: configuration.directory)
      let registry = try registry(directory, configuration)
      guard let left = directory.known(registry).last(where: \.isSignedIn) else { return nil }
      var unadopted: KithError?
      do throws(KithError) {
        try adopt(directory, configuration)
      } catch {
        guard !passingTroubles.contains(error.code) else { throw error }
        unadopted = error
      }
      try directory.note(.signedOut, registry)
      return (left, unadopted)
    }
  }

  /// The file that the device of a known account needs, and that is missing or empty; nil: none.
  package static func missingFile(of account: KnownAccount) -> String? {
    DeviceDirectory.missingFile(account.directory)
  }

  /// Opens and closes a device that is to be signed in, so that nobody signs in to one that cannot be
  /// used: local writes would be out of reach. A device under a passphrase is only looked at, because
  /// nobody may be there to give the passphrase.
  private static func checkOpening(
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

  /// Removes the device of an account of ``known`` from this host, with its keys and data, and
  /// signs out if the account is signed in. The account counts the device until another one revokes
  /// it.
  ///
  /// - Throws: ``KithError`` with `inUse` if another process keeps the device open, or a storage
  ///   code. Then the account is signed out; call it again. If this process is killed, the next one
  ///   that reads the list of accounts finishes the removal.
  package static func leave(
    _ account: KnownAccount, _ configuration: Configuration
  ) async throws(KithError) {
    try await BlockingThread.run { () throws(KithError) in
      let directory = AccountsDirectory(path: configuration.directory)
      let registry = try registry(directory, configuration)
      // As it is now: the account may have been signed in or out since it was looked up.
      let location = try directory.location()
      let isSignedIn = directory.directory(of: location) == account.directory
      try directory.note(isSignedIn ? .signedOut : location, registry)
      try directory.remove(account.directory, waiting: AccountsDirectory.longestWait)
    }
  }

  /// Has `make` create a device of the first or a further account, and signs in to it. The caller
  /// then calls ``adoptLocalWrites(_:)``. Returns the account with its device, and their directory.
  package static func add(
    _ configuration: Configuration,
    _ make: (_ directory: String) async throws(KithError) -> AccountSummary
  ) async throws(KithError) -> (summary: AccountSummary, directory: String) {
    let directory = AccountsDirectory(path: configuration.directory)
    let first: @Sendable () throws(KithError) -> AccountID? = { () throws(KithError) in
      try accountOfFirst(directory, configuration)
    }
    try await adoptLocalWrites(configuration, isLeaving: true)
    // Reading and writing the list block for the disk, which Swift's shared threads must not.
    let location = try await BlockingThread.run { () throws(KithError) in
      let location = try directory.newLocation()
      try directory.checkNoting(location, first)
      return location
    }
    let path = directory.directory(of: location)
    let summary = try await make(path)
    try await BlockingThread.run { () throws(KithError) in
      try directory.noteMade(location, summary, first)
    }
    return (summary, path)
  }

  /// As ``add(_:_:)`` for a device that joins; see `AccountsDirectory.join`. Once the device exists,
  /// it is opened as `noted`, and adopts the local writes; `arrival` is the result.
  package static func join(
    _ configuration: Configuration, noted: Configuration,
    _ make:
      (
        _ directory: String,
        _ made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void
      ) async throws(KithError) -> AccountSummary
  ) async throws(KithError) -> (
    summary: AccountSummary, directory: String, arrival: Result<Void, KithError>
  ) {
    let directory = AccountsDirectory(path: configuration.directory)
    try await adoptLocalWrites(configuration, isLeaving: true)
    return try await directory.join(
      first: { () throws(KithError) in try accountOfFirst(directory, configuration) },
      arriving: { _ async throws(KithError) in try await adoptLocalWrites(noted) }, make)
  }

  /// Has the signed-in account, if any, adopt the local writes; if `isLeaving`, those that it can. It
  /// waits for a process that has either device open and is starting or ending.
  package static func adoptLocalWrites(
    _ configuration: Configuration, isLeaving: Bool = false
  ) async throws(KithError) {
    try await BlockingThread.run { () throws(KithError) in
      let outcome = try adopt(AccountsDirectory(path: configuration.directory), configuration)
      if !isLeaving, let error = outcome.error { throw error }
    }
  }

  package static func makeLocalStores(in path: String) throws(KithError) {
    let directory = AccountsDirectory(path: path)
    try directory.prepare()
    try ActiveDevice.makeLocalDevice(directory.local)
  }

  @discardableResult
  private static func adopt(
    _ directory: AccountsDirectory, _ configuration: Configuration
  ) throws(KithError) -> HandedOver {
    let location = try directory.location()
    guard location != .signedOut else { return HandedOver() }
    var active: ActiveDevice?
    defer { try? active?.close() }
    do throws(KithError) {
      return try directory.handOver(
        waiting: AccountsDirectory.longestWait
      ) { () throws(KithError) in
        let made = try ActiveDevice(at: location, in: directory, configuration)
        active = made
        return made.service
      }
    } catch {
      throw .pendingAdoption(error)
    }
  }

  /// The registry, and the devices that it lacks, which the next sign-in or sign-out notes.
  private static func registry(
    _ directory: AccountsDirectory, _ configuration: Configuration
  ) throws(KithError) -> AccountsDirectory.Registry {
    var registry = try directory.registry { () throws(KithError) in
      try accountOfFirst(directory, configuration)
    }
    for name in directory.unnoted(in: registry) {
      // One that is in use may be about to be noted.
      let path = directory.directory(of: .signedIn(directory: name))
      let device = try? DeviceStorage.open(
        path, configuration.passphrase, isForReading: configuration.isForReading)
      guard let device else { continue }
      defer { try? device.close() }
      guard let account = try? DeviceStorage.account(of: device) else { continue }
      registry.devices.append(.init(account: account.digest.hex, directory: name))
    }
    return registry
  }

  /// The account of the device in the directory itself.
  private static func accountOfFirst(
    _ directory: AccountsDirectory, _ configuration: Configuration
  ) throws(KithError) -> AccountID? {
    let active = try ActiveDevice(at: .signedIn(directory: "."), in: directory, configuration)
    defer { try? active.close() }
    return active.account
  }
}
