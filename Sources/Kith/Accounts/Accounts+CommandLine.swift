internal import KithCore
internal import KithCrypto
internal import KithStorage

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

  /// Whether the only device is that in the directory itself, and was never noted, so that only
  /// opening it tells the account.
  package static func holdsOnlyAccountHere(in path: String) throws(KithError) -> Bool {
    let directory = AccountsDirectory(path: path)
    return try directory.read() == nil && directory.unnoted(in: .init()) == ["."]
  }

  /// Removes such a device, which cannot be opened, with its keys and data.
  ///
  /// - Throws: ``KithError`` with `inUse` if another process keeps it open, or a storage code. If its
  ///   secrets are gone then, the rest is deleted by hand: nothing can open it.
  package static func leaveAccountHere(in path: String) async throws(KithError) {
    try await BlockingThread.run { () throws(KithError) in
      try KithError.mapping(DeviceDirectory.remove(path))
    }
  }

  /// Has `make` create a device of the first or a further account, and signs in to it. The caller
  /// then calls ``adoptLocalWrites(_:)``. Returns the account with its device, and their directory.
  package static func add(
    _ configuration: Configuration,
    _ make: (_ directory: String) async throws(KithError) -> AccountSummary
  ) async throws(KithError) -> (summary: AccountSummary, directory: String) {
    let directory = AccountsDirectory(path: configuration.directory)
    let accountHere: @Sendable () throws(KithError) -> AccountID? = { () throws(KithError) in
      try Self.accountHere(directory, configuration)
    }
    try await adoptLocalWrites(configuration, isLeaving: true)
    // Reading and writing the list block for the disk, which Swift's shared threads must not.
    let location = try await BlockingThread.run { () throws(KithError) in
      let location = try directory.newLocation()
      try directory.checkNoting(location, accountHere)
      return location
    }
    let path = directory.directory(of: location)
    let summary = try await make(path)
    try await BlockingThread.run { () throws(KithError) in
      try directory.noteMade(location, summary, accountHere)
    }
    return (summary, path)
  }

  /// Makes a device that joins, in a directory; calls `made` once it exists.
  package typealias MakeJoined =
    (
      _ directory: String,
      _ made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void
    ) async throws(KithError) -> AccountSummary
  package typealias Joined = (
    summary: AccountSummary, directory: String, arrival: Result<Void, KithError>
  )

  /// As ``add(_:_:)`` for a device that joins; see `AccountsDirectory.join`. Once the device exists,
  /// it is opened as `noted`, and adopts the local writes; `arrival` is the result.
  package static func join(
    _ configuration: Configuration, noted: Configuration,
    _ make: MakeJoined
  ) async throws(KithError) -> Joined {
    let directory = AccountsDirectory(path: configuration.directory)
    try await adoptLocalWrites(configuration, isLeaving: true)
    return try await directory.join(
      accountHere: { () throws(KithError) in try accountHere(directory, configuration) },
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
      try accountHere(directory, configuration)
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
  private static func accountHere(
    _ directory: AccountsDirectory, _ configuration: Configuration
  ) throws(KithError) -> AccountID? {
    let active = try ActiveDevice(at: .signedIn(directory: "."), in: directory, configuration)
    defer { try? active.close() }
    return active.account
  }
}
