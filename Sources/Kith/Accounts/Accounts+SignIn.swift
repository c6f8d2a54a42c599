public import KithCore
internal import KithCrypto
internal import KithStorage
internal import Synchronization

extension Accounts {
  /// How long ``run()`` may take to follow a change that this program made.
  private static let longestFollow = Duration.seconds(30)

  /// An account whose device is on this host.
  public struct KnownAccount: Sendable, Hashable {
    /// The account's id, in hexadecimal.
    public var account: String
    /// Where its device is.
    public var directory: String
    /// Whether it is signed in.
    public var isSignedIn: Bool
  }

  /// The accounts that were signed in on this host and can be again, in the order of the first time.
  ///
  /// - Throws: ``KithError`` with `damaged` or another storage code.
  public var known: [KnownAccount] {
    get throws(KithError) {
      let registry = try registry()
      return registry.devices.map { device in
        KnownAccount(
          account: device.account,
          directory: directory.directory(of: .signedIn(directory: device.directory)),
          isSignedIn: device.directory == registry.signedIn)
      }
    }
  }

  /// Begins an account, and signs in to it. What was written so far is its first data.
  ///
  /// - Parameter name: What people call this device, 1 to 64 bytes.
  /// - Returns: The account, and its recovery key, which is kept nowhere: show it once, to be written
  ///   down. Also where the node does not follow in time, or cannot: the account is there then, and
  ///   ``signedIn`` says whether the stores are its own.
  /// - Throws: ``KithError`` with `invalidName`, `passphrase` or a storage code; no account was begun
  ///   then.
  @discardableResult
  public func createAccount(
    name: String
  ) async throws(KithError) -> (summary: AccountSummary, recoveryKey: String) {
    let place = try newDirectory()
    let made = try Node.createAccount(
      directory: directory.directory(of: place), name: name, passphrase: newPassphrase()
    )
    do throws(KithError) {
      try note(place, made.summary)
    } catch {
      directory.discard(place)
      throw error
    }
    do throws(KithError) {
      try await arrive(at: place)
    } catch {
      // Thrown, it would take the recovery key with it, which is nowhere else.
      configuration.logger.error(
        "the account is begun, and its stores are not shown yet",
        metadata: ["code": "\(error.code)"])
    }
    return made
  }

  /// Joins the account that a token invites to, with a new device, and signs in to it.
  ///
  /// - Parameters:
  ///   - token: The long token, as printed by the inviting device.
  ///   - name: What people call this device, 1 to 64 bytes.
  ///   - address: Where the inviting device is, `host:port`, instead of what the token says.
  ///   - onMeeting: Gets the inviting device and this one's fingerprint, to be compared.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`, `cancelled`,
  ///   `timedOut` or a storage code; nobody is signed in or out then, but with `timedOut`.
  @discardableResult
  public func signIn(
    token: String, name: String, address: String? = nil,
    onMeeting: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) -> Void = {
      _, _ in
    }
  ) async throws(KithError) -> AccountSummary {
    let place = try newDirectory()
    try checkNoting(place)
    let summary = try await Node.join(
      directory: directory.directory(of: place), name: name, token: token, address: address,
      passphrase: newPassphrase(), onMeeting: onMeeting)
    try noteJoined(place, summary)
    try await arrive(at: place)
    return summary
  }

  /// Joins the account of the device that shows a short code, with a new device, and signs in to it.
  ///
  /// - Parameters:
  ///   - code: The code, as shown by the inviting device; or the token.
  ///   - name: What people call this device, 1 to 64 bytes.
  ///   - address: Where the inviting device is, `host` or `host:port`; nil: it is found on the LAN.
  ///   - confirm: Gets the inviting device and this one's fingerprint: show both, have them compared,
  ///     and say whether to join.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`, `cancelled`,
  ///   `timedOut` or a storage code; nobody is signed in or out then, but with `timedOut`.
  @discardableResult
  public func signIn(
    code: String, name: String, address: String? = nil,
    confirm: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    let place = try newDirectory()
    try checkNoting(place)
    let summary = try await Node.join(
      directory: directory.directory(of: place), name: name, code: code, address: address,
      passphrase: newPassphrase(), confirm: confirm)
    try noteJoined(place, summary)
    try await arrive(at: place)
    return summary
  }

  /// Signs in to an account whose device is here.
  ///
  /// - Throws: ``KithError`` with `missing` where there is none, `timedOut` or a storage code.
  public func signIn(to account: AccountID) async throws(KithError) {
    try await signIn(toAccount: account.digest.hex)
  }

  /// Signs in to an account of ``known``; see ``signIn(to:)-(AccountID)``.
  public func signIn(to account: KnownAccount) async throws(KithError) {
    try await signIn(toAccount: account.account)
  }

  private func signIn(toAccount account: String) async throws(KithError) {
    let registry = try registry()
    guard let device = registry.devices.last(where: { $0.account == account }) else {
      throw KithError(
        .missing,
        "No device of the account \(account.prefix(16)) is here. Join it with a pairing code.",
        path: configuration.directory)
    }
    try await move(to: .signedIn(directory: device.directory), registry)
  }

  /// Signs out: the stores show what is local from here on. The account's data stays here, and on
  /// its other devices.
  ///
  /// - Throws: ``KithError`` with `timedOut` or a storage code.
  public func signOut() async throws(KithError) {
    try await move(to: .signedOut, registry())
  }

  /// The directory of the device whose stores programs see, for a directory of accounts, or one that
  /// holds a device. Where nothing is there yet it is the directory itself.
  ///
  /// - Throws: ``KithError`` with `damaged` or another storage code.
  public static func deviceDirectory(in path: String) throws(KithError) -> String {
    let accounts = AccountsDirectory(path: path)
    let place = try accounts.place()
    guard place == .signedOut, !DeviceDirectory.holdsDevice(accounts.local) else {
      return accounts.directory(of: place)
    }
    return path
  }

  /// Whether programs see the local stores of nobody in a directory.
  ///
  /// - Throws: ``KithError`` with `damaged` or another storage code.
  package static func isSignedOut(in path: String) throws(KithError) -> Bool {
    let accounts = AccountsDirectory(path: path)
    return try accounts.place() == .signedOut && DeviceDirectory.holdsDevice(accounts.local)
  }

  // MARK: Moving

  /// The registry; where none was written yet, what it would hold.
  private func registry() throws(KithError) -> AccountsDirectory.Registry {
    if let registry = try directory.read() { return registry }
    var registry = AccountsDirectory.Registry()
    if let account = signedIn {
      registry.signedIn = "."
      registry.devices = [.init(account: account.digest.hex, directory: ".")]
    }
    return registry
  }

  /// Where a new device is made: in the directory itself, where that holds none.
  private func newDirectory() throws(KithError) -> AccountsDirectory.Place {
    guard DeviceDirectory.holdsDevice(configuration.directory) else {
      return .signedIn(directory: ".")
    }
    var random = SystemRandom()
    let name = random.draw(Digest128.self).hex
    do throws(StorageError) {
      try SmallFile.makeDirectory(configuration.directory + "/accounts")
    } catch {
      throw KithError(error)
    }
    return .signedIn(directory: "accounts/" + name)
  }

  /// What a new device is put under; nil: nothing.
  private func newPassphrase() throws(KithError) -> Passphrase? {
    if let chosen = configuration.newDevicePassphrase { return chosen }
    return try configuration.passphrase?()
  }

  /// Notes a new device, and that its account is the one that is signed in. Nothing needs to be noted
  /// of the one in the directory itself, where nobody has signed in or out yet.
  private func note(
    _ place: AccountsDirectory.Place, _ summary: AccountSummary
  ) throws(KithError) {
    guard case .signedIn(let path) = place else { return }
    let isFirst = try directory.read() == nil
    if path == "." && isFirst { return }
    var registry = try registry()
    registry.devices.removeAll { $0.directory == path }
    registry.devices.append(.init(account: summary.account.digest.hex, directory: path))
    try note(place, registry)
  }

  /// Writes the list of accounts as it is, if it is to be changed. To be called before an account takes
  /// a device in: nothing takes it out again, and without its note nothing finds it.
  private func checkNoting(_ place: AccountsDirectory.Place) throws(KithError) {
    let isFirst = try directory.read() == nil
    if place == .signedIn(directory: ".") && isFirst { return }
    let registry = try registry()
    try directory.update { if isFirst && $0 == AccountsDirectory.Registry() { $0 = registry } }
  }

  /// Notes a device that an account has taken in.
  private func noteJoined(
    _ place: AccountsDirectory.Place, _ summary: AccountSummary
  ) throws(KithError) {
    do throws(KithError) {
      try note(place, summary)
    } catch {
      let path = directory.directory(of: place)
      throw KithError(
        error.code,
        "The account has taken this device in, and the list of accounts could not be written: "
          + "\(error.message) Open the device's directory by itself, or revoke it on another device "
          + "and sign in anew.",
        path: path, cause: error)
    }
  }

  /// Notes who is signed in.
  private func note(
    _ place: AccountsDirectory.Place, _ registry: AccountsDirectory.Registry
  ) throws(KithError) {
    try directory.update { stored in
      for device in registry.devices where !stored.devices.contains(device) {
        stored.devices.append(device)
      }
      stored.signedIn = if case .signedIn(let path) = place { path } else { nil }
    }
  }

  private func move(
    to place: AccountsDirectory.Place, _ registry: AccountsDirectory.Registry
  ) async throws(KithError) {
    try note(place, registry)
    try await arrive(at: place)
  }

  /// Waits until the stores are those of the place that was noted.
  private func arrive(at place: AccountsDirectory.Place) async throws(KithError) {
    moved.raise()
    let isTaken = try await BlockingThread.run { () throws(KithError) in
      try self.follow(isServing: false)
    }
    if isTaken { return }
    let hasMoved = await moved.wait(timeout: Self.longestFollow) {
      self.state.withLock { $0.seat.place == place }
    }
    if hasMoved { return }
    if Task.isCancelled { throw KithError(.cancelled, "The wait was cancelled.") }
    throw KithError(.timedOut, "The node did not follow in time. See its log.")
  }
}
