internal import KithCore
internal import KithStorage

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

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
  enum Place: Hashable, Sendable {
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

  func directory(of place: Place) -> String {
    switch place {
    case .signedOut: local
    case .signedIn("."): path
    case .signedIn(let directory): path + "/" + directory
    }
  }

  func prepare() throws(KithError) {
    try KithError.mapping { () throws(StorageError) in try SmallFile.makeDirectory(path) }
  }

  func place() throws(KithError) -> Place {
    guard let registry = try read() else {
      return DeviceDirectory.holdsDevice(path) ? .signedIn(directory: ".") : .signedOut
    }
    return registry.signedIn.map { .signedIn(directory: $0) } ?? .signedOut
  }

  /// The registry; nil if nobody has signed in or out yet, except by the command line.
  func read() throws(KithError) -> Registry? {
    try KithError.mapping { () throws(StorageError) in try readStored() }
  }

  /// Changes the registry under its lock.
  func update(_ body: (inout Registry) -> Void) throws(KithError) {
    try KithError.mapping { () throws(StorageError) in
      try SmallFile.withLock(path + "/accounts.lock") { () throws(StorageError) in
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
      }
    }
  }

  /// Removes a device that was just made for a further account and not noted.
  func discard(_ place: Place) {
    guard case .signedIn(let directory) = place, directory != "." else { return }
    try? FileManager.default.removeItem(atPath: path + "/" + directory)
  }

  /// Removes a device and its note. Waits for another process that has it open.
  func remove(_ device: String, waiting wait: Duration) throws(KithError) {
    let turn = DirectoryTurn(device, within: wait)
    while true {
      do throws(KithError) {
        try KithError.mapping { () throws(StorageError) in try DeviceDirectory.remove(device) }
        break
      } catch {
        guard error.code == .inUse, turn.wait() else { throw error }
      }
    }
    try update { registry in
      registry.devices.removeAll {
        directory(of: .signedIn(directory: $0.directory)) == device
      }
    }
    // The directory itself has other files too.
    if device != path { try? FileManager.default.removeItem(atPath: device) }
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
