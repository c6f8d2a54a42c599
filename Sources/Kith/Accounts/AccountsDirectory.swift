internal import FoundationEssentials
internal import KithCore
internal import KithStorage

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

  /// Changes the registry under its lock.
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

  /// Removes a device that was just made for a further account and not noted.
  func discard(_ location: Location) {
    guard case .signedIn(let directory) = location, directory != "." else { return }
    try? FileManager.default.removeItem(atPath: path + "/" + directory)
  }

  /// Removes a noted device and its note. Waits for another process that has it open.
  func remove(_ device: String, waiting wait: Duration) throws(KithError) {
    try mark(device, isLeaving: true)
    let release = DirectoryWait(device, within: wait)
    while true {
      do throws(KithError) {
        return try removeAtOnce(device)
      } catch {
        if error.code == .inUse, release.wait() { continue }
        if DeviceDirectory.holdsDevice(device) { try? mark(device, isLeaving: nil) }
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
    let below = try? FileManager.default.contentsOfDirectory(atPath: path + "/accounts")
    return (["."] + (below ?? []).sorted().map { "accounts/" + $0 }).filter { name in
      Self.isBelow(name) && !registry.devices.contains { $0.directory == name }
        && DeviceDirectory.holdsDevice(directory(of: .signedIn(directory: name)))
    }
  }

  private func mark(_ device: String, isLeaving: Bool?) throws(KithError) {
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
