internal import KithCore
internal import KithCrypto
internal import KithStorage
internal import Synchronization

extension AccountsDirectory {
  /// Returns the account of the device in the directory itself; nil if there is none.
  typealias First = () throws(KithError) -> AccountID?

  /// The registry, or the one to write if there is none.
  func registry(_ first: First) throws(KithError) -> Registry {
    try finishRemovals()
    if let registry = try read() { return registry }
    var registry = Registry()
    if try KithError.mapping(DeviceDirectory.findsDevice(path)), let account = try first() {
      registry.signedIn = "."
      registry.devices = [.init(account: account.digest.hex, directory: ".")]
    }
    return registry
  }

  /// The location for a new device: the directory itself if it holds none, else a new one under
  /// `accounts`.
  func newLocation() throws(KithError) -> Location {
    try finishRemovals()
    guard DeviceDirectory.holdsDevice(path) else { return .signedIn(directory: ".") }
    var random = SystemRandom()
    let name = random.draw(Digest128.self).hex
    try KithError.mapping(Files.makePrivateDirectory(path + "/accounts"))
    return .signedIn(directory: "accounts/" + name)
  }

  /// Notes a new device, and signs in to its account. Without a registry, the device in the
  /// directory itself needs no note.
  func note(
    _ location: Location, _ summary: AccountSummary, _ first: First
  ) throws(KithError) {
    guard case .signedIn(let path) = location else { return }
    let isFirst = try read() == nil
    if path == "." && isFirst { return }
    var registry = try registry(first)
    registry.devices.removeAll { $0.directory == path }
    registry.devices.append(.init(account: summary.account.digest.hex, directory: path))
    try note(location, registry)
  }

  /// Checks that the location can be noted, by writing the registry unchanged. Called before a device
  /// joins: the account counts it for ever, and nothing finds it without its note.
  func checkNoting(_ location: Location, _ first: First) throws(KithError) {
    let isFirst = try read() == nil
    if location == .signedIn(directory: ".") && isFirst { return }
    let registry = try registry(first)
    try update { if isFirst && $0 == Registry() { $0 = registry } }
  }

  /// Notes the device of a new or recovered account, which is not discarded if that fails.
  func noteMade(
    _ location: Location, _ summary: AccountSummary, _ first: First
  ) throws(KithError) {
    do throws(KithError) {
      try note(location, summary, first)
    } catch {
      throw KithError(
        error.code,
        "The device was made, but the list of accounts could not be written: \(error.message) "
          + "Keep its recovery key if one was shown. Open the device's directory by itself, or, if the "
          + "account has another device, revoke this one there and join again.",
        path: directory(of: location), cause: error)
    }
  }

  /// Has `join` make a device that joins an account, in a new location.
  ///
  /// `join` calls its second argument once the device exists, before the account counts it. Then
  /// the device is noted, and `arrive` called, whose error is the `arrival` and does not end the
  /// join. If `join` throws before that, the device is discarded.
  func join(
    first: @escaping @Sendable () throws(KithError) -> AccountID?,
    arriving arrive: @escaping @Sendable (Location) async throws(KithError) -> Void,
    _ join:
      (
        _ directory: String,
        _ made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void
      ) async throws(KithError) -> AccountSummary
  ) async throws(KithError) -> (
    summary: AccountSummary, directory: String, arrival: Result<Void, KithError>
  ) {
    let location = try newLocation()
    let arrival = Mutex<Result<Void, KithError>?>(nil)
    do throws(KithError) {
      try checkNoting(location, first)
      let path = directory(of: location)
      let summary = try await join(path) { summary async throws(KithError) in
        try note(location, summary, first)
        let result = await Result(awaiting: { () async throws(KithError) in
          try await arrive(location)
        })
        arrival.withLock { $0 = result }
      }
      return (summary, path, arrival.withLock { $0 } ?? .success(()))
    } catch {
      if arrival.withLock({ $0 == nil }) { discard(location) }
      throw error
    }
  }

  func note(_ location: Location, _ registry: Registry) throws(KithError) {
    try update { stored in
      for device in registry.devices {
        let isNoted = { (noted: Registry.Device) in noted.directory == device.directory }
        // A directory holds one device.
        stored.devices.removeAll { isNoted($0) && $0.account != device.account }
        if !stored.devices.contains(where: isNoted) { stored.devices.append(device) }
      }
      stored.signedIn = if case .signedIn(let path) = location { path } else { nil }
    }
  }

  func known(_ registry: Registry) -> [Accounts.KnownAccount] {
    registry.devices.compactMap { device in
      guard let account = Digest256(hex: device.account) else { return nil }
      return Accounts.KnownAccount(
        account: AccountID(account),
        directory: directory(of: .signedIn(directory: device.directory)),
        isSignedIn: device.directory == registry.signedIn)
    }
  }

  /// The location of an account's device.
  ///
  /// - Throws: ``KithError`` with `missing` if no device of the account is here.
  func location(of account: AccountID, in registry: Registry) throws(KithError) -> Location {
    guard let device = registry.devices.last(where: { $0.account == account.hex }) else {
      throw KithError(
        .missing,
        "No device of the account \(account.hex.prefix(16)) is here. Join it with a pairing code.",
        path: path)
    }
    return .signedIn(directory: device.directory)
  }
}
