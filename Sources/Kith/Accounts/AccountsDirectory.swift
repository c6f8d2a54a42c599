internal import FoundationEssentials
internal import KithCore
internal import KithCrypto
internal import KithStorage
internal import Synchronization

/// The directory of a user's accounts on this host.
///
/// | path | holds |
/// | --- | --- |
/// | `.` | a device, as `kith account create` and `kith join` make it |
/// | `accounts/…` | devices of further accounts, under random names |
/// | `local` | the local stores: a device whose account nobody else has |
/// | `accounts.json` | the account that is signed in; if missing, the one of `.`, if any |
struct AccountsDirectory: Sendable {
  /// The account whose stores programs see.
  enum Location: Hashable, Sendable {
    /// The local stores.
    case signedOut
    /// Relative to the path; "." for the path itself.
    case signedIn(directory: String)
  }

  /// The content of `accounts.json`.
  struct Registry: Codable, Equatable {
    struct Device: Codable, Equatable {
      /// The account's id, in hexadecimal.
      var account: String
      /// Relative to the path.
      var directory: String
      /// Set before the device is removed, so that another process finishes it if this one is killed.
      var isLeaving: Bool?
    }

    var version = 1
    /// A device's directory; nil: nobody is signed in.
    var signedIn: String?
    /// In the order in which they were first signed in.
    var devices: [Device] = []
  }

  /// In bytes.
  private static let largestRegistry = 1 << 20

  let path: String

  var local: String { path + "/local" }

  private var registry: String { path + "/accounts.json" }

  func directory(of location: Location) -> String {
    switch location {
    case .signedOut: local
    case .signedIn("."): path
    case .signedIn(let directory): path + "/" + directory
    }
  }

  func prepare() throws(KithError) {
    try KithError.mapping(Files.makePrivateDirectory(path))
  }

  /// - Throws: ``KithError`` with `damaged` if the directory holds a part of a device, or devices
  ///   without their list.
  func location() throws(KithError) -> Location {
    guard let registry = try read() else {
      if try KithError.mapping(DeviceDirectory.findsDevice(path)) {
        return .signedIn(directory: ".")
      }
      // Throws for one without its secrets, which opens no more, but is no empty directory either.
      for name in directories {
        _ = try KithError.mapping(
          DeviceDirectory.findsDevice(directory(of: .signedIn(directory: name))))
      }
      guard unnoted(in: Registry()).isEmpty else {
        throw KithError(
          .damaged,
          "The list of accounts is missing, though devices of accounts are here. Put it back from a "
            + "backup, or see kith account list, and sign in again: kith account sign-in.",
          path: self.registry)
      }
      return .signedOut
    }
    return registry.signedIn.map { .signedIn(directory: $0) } ?? .signedOut
  }

  /// The directory of the location.
  ///
  /// - Throws: ``KithError`` with `missing` if the list of accounts names a device that is not there.
  func deviceDirectory() throws(KithError) -> String {
    let location = try location()
    let directory = directory(of: location)
    guard location != .signedOut, directory != path,
      try !KithError.mapping(DeviceDirectory.findsDevice(directory))
    else { return directory }
    throw KithError(
      .missing,
      "\(registry) names it as the device that is signed in, and none is there. Put it back from a "
        + "backup, or sign out (kith account sign-out) and join the account anew.", path: directory)
  }

  /// The registry; nil if nobody has signed in or out yet, except by the command line.
  func read() throws(KithError) -> Registry? {
    try KithError.mapping(readStored())
  }

  /// Changes the registry under its lock, and blocks for other processes and the disk.
  ///
  /// - Throws: ``KithError`` with `inUse` if another process keeps the lock.
  func update(_ body: (inout Registry) -> Void) throws(KithError) {
    try KithError.mapping(
      SmallFile.withLock(path + "/accounts.lock") { () throws(StorageError) in
        var registry = try readStored() ?? Registry()
        body(&registry)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let bytes = try? encoder.encode(registry) else {
          throw StorageError(
            code: .inputOutput, path: self.registry,
            message: "the list of accounts cannot be written as JSON; nothing has changed")
        }
        try SmallFile.replace(self.registry, with: Array(bytes))
      })
  }

  /// Removes a device that was just made and not noted.
  func discard(_ location: Location) {
    guard case .signedIn = location else { return }
    let device = directory(of: location)
    try? DeviceDirectory.remove(device)
    // The directory itself has other files too.
    if device != path { try? FileManager.default.removeItem(atPath: device) }
  }

  /// Removes a noted device and its note. Waits for another process that has it open.
  func remove(_ device: String, waiting wait: Duration) throws(KithError) {
    try setLeaving(true, of: device)
    let release = DirectoryWait(device, within: wait)
    while true {
      do throws(KithError) {
        return try removeAtOnce(device)
      } catch {
        if error.code == .inUse, release.wait() { continue }
        if DeviceDirectory.holdsDevice(device) { try? setLeaving(nil, of: device) }
        throw error
      }
    }
  }

  /// Finishes removals whose processes were killed. If that fails now, the next call tries again.
  func finishRemovals() throws(KithError) {
    for device in try read()?.devices ?? [] where device.isLeaving == true {
      try? removeAtOnce(directory(of: .signedIn(directory: device.directory)))
    }
  }

  /// The devices that a registry lacks, because their processes were killed before they noted them.
  func unnoted(in registry: Registry) -> [String] {
    directories.filter { name in
      !registry.devices.contains { $0.directory == name }
        && DeviceDirectory.holdsDevice(directory(of: .signedIn(directory: name)))
    }
  }

  /// The directories in which devices of accounts may be.
  private var directories: [String] {
    let below = try? FileManager.default.contentsOfDirectory(atPath: path + "/accounts")
    return (["."] + (below ?? []).sorted().map { "accounts/" + $0 }).filter(Self.isBelow)
  }

  private func setLeaving(_ isLeaving: Bool?, of device: String) throws(KithError) {
    try update { registry in
      for index in registry.devices.indices where isNote(registry.devices[index], of: device) {
        registry.devices[index].isLeaving = isLeaving
      }
    }
  }

  /// The files go first: without its note, nothing would find a device.
  private func removeAtOnce(_ device: String) throws(KithError) {
    try KithError.mapping(DeviceDirectory.remove(device))
    try update { registry in registry.devices.removeAll { isNote($0, of: device) } }
    // The directory itself has other files too.
    if device != path { try? FileManager.default.removeItem(atPath: device) }
  }

  private func isNote(_ note: Registry.Device, of device: String) -> Bool {
    directory(of: .signedIn(directory: note.directory)) == device
  }

  private func readStored() throws(StorageError) -> Registry? {
    // Otherwise only some commands would refuse it: those that open the device in it.
    if let link = Files.linked(path) { throw link }
    guard let bytes = try SmallFile.read(registry, atMost: Self.largestRegistry) else { return nil }
    guard let registry = try? JSONDecoder().decode(Registry.self, from: Data(bytes)),
      registry.version == 1,
      ([registry.signedIn].compactMap(\.self) + registry.devices.map(\.directory))
        .allSatisfy(Self.isBelow)
    else {
      throw StorageError(
        code: .damaged, path: self.registry,
        message:
          "the file cannot be understood; restore it, or remove it to sign in with the device "
          + "of the directory itself")
    }
    return registry
  }

  /// Whether a directory is one that this type makes.
  private static func isBelow(_ directory: String) -> Bool {
    if directory == "." { return true }
    let parts = directory.split(separator: "/", omittingEmptySubsequences: false)
    return parts.count == 2 && parts[0] == "accounts" && !parts[1].isEmpty
      && parts[1].allSatisfy(\.isHexDigit)
  }
}

extension AccountsDirectory {
  /// Returns the account of the device in the directory itself; nil if there is none.
  typealias AccountHere = () throws(KithError) -> AccountID?

  /// The registry, or the one to write if there is none.
  func registry(_ accountHere: AccountHere) throws(KithError) -> Registry {
    try finishRemovals()
    if let registry = try read() { return registry }
    var registry = Registry()
    if try KithError.mapping(DeviceDirectory.findsDevice(path)), let account = try accountHere() {
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
    _ location: Location, _ summary: AccountSummary, _ accountHere: AccountHere
  ) throws(KithError) {
    guard case .signedIn(let path) = location else { return }
    let hasNoRegistry = try read() == nil
    if path == "." && hasNoRegistry { return }
    var registry = try registry(accountHere)
    registry.devices.removeAll { $0.directory == path }
    registry.devices.append(.init(account: summary.account.digest.hex, directory: path))
    try note(location, registry)
  }

  /// Checks that the location can be noted, by writing the registry unchanged. Called before a device
  /// joins: the account counts it for ever, and nothing finds it without its note.
  func checkNoting(_ location: Location, _ accountHere: AccountHere) throws(KithError) {
    let hasNoRegistry = try read() == nil
    if location == .signedIn(directory: ".") && hasNoRegistry { return }
    let registry = try registry(accountHere)
    try update { if hasNoRegistry && $0 == Registry() { $0 = registry } }
  }

  /// Notes the device of a new or recovered account, which is not discarded if that fails.
  func noteMade(
    _ location: Location, _ summary: AccountSummary, _ accountHere: AccountHere
  ) throws(KithError) {
    do throws(KithError) {
      try note(location, summary, accountHere)
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
    accountHere: @escaping @Sendable () throws(KithError) -> AccountID?,
    arriving arrive: @escaping @Sendable (Location) async throws(KithError) -> Void,
    _ join: Accounts.MakeJoined
  ) async throws(KithError) -> Accounts.Joined {
    let location = try await BlockingThread.run { () throws(KithError) in try newLocation() }
    let isMade = Atomic(false)
    let arrival = Mutex<Result<Void, KithError>?>(nil)
    do throws(KithError) {
      try await BlockingThread.run { () throws(KithError) in
        try checkNoting(location, accountHere)
      }
      let path = directory(of: location)
      let summary = try await join(path) { summary async throws(KithError) in
        isMade.store(true, ordering: .relaxed)
        try await BlockingThread.run { () throws(KithError) in
          try note(location, summary, accountHere)
        }
        let result = await Result(awaiting: { () async throws(KithError) in
          try await arrive(location)
        })
        arrival.withLock { $0 = result }
      }
      return (summary, path, arrival.withLock { $0 } ?? .success(()))
    } catch {
      // In the directory itself, another process may have made a device meanwhile.
      let isOwn = isMade.load(ordering: .relaxed) || location != .signedIn(directory: ".")
      if isOwn, arrival.withLock({ $0 == nil }) { discard(location) }
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

/// The directory of programs and commands that name none.
package enum DefaultDirectory {
  package static func path(environment: [String: String]) -> String {
    if let path = environment.variable("KITH_DIRECTORY") { return path }
    let home = environment.variable("HOME") ?? URL.homeDirectory.path
    return dataHome(environment, home: home) + "/kith"
  }

  /// Why a given path is refused; nil: it is not. Only a shell replaces `~`, and not within quotes: the
  /// stores would be in a directory of that name, under the current one.
  package static func refusal(of path: String) -> String? {
    guard path.hasPrefix("~") else { return nil }
    return "\(path) begins with ~, which only a shell replaces. Write the whole path, or ./\(path) "
      + "for a directory here."
  }

  /// The XDG Base Directory Specification accepts absolute paths only.
  package static func dataHome(_ environment: [String: String], home: String) -> String {
    if let path = environment.variable("XDG_DATA_HOME"), path.hasPrefix("/") { return path }
    return home + "/.local/share"
  }
}

extension [String: String] {
  /// The value of an environment variable; nil also for an empty one.
  package func variable(_ name: String) -> String? { self[name].flatMap { $0.isEmpty ? nil : $0 } }
}
