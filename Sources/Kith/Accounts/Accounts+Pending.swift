internal import FoundationEssentials
package import KithCore
internal import KithStorage

extension Accounts {
  /// The problem that writes made while nobody was signed in are not in the account yet. Nil: they
  /// are, nobody is signed in, or another process has them open at this moment.
  ///
  /// Reads a copy, and changes nothing.
  package static func pendingAdoption(in path: String) -> NodeStatus.Problem? {
    let directory = AccountsDirectory(path: path)
    guard let location = try? directory.location(), location != .signedOut else { return nil }
    do throws(KithError) {
      let stores = try directory.storesWithLocalWrites()
      guard !stores.isEmpty else { return nil }
      throw KithError(
        .notRunning,
        "They are in the local \(stores.count == 1 ? "store" : "stores") "
          + "\(stores.map(\.rawValue).joined(separator: ", ")). If no program is taking them over now, "
          + "kith account sign-in does so, or says what is in the way.")
    } catch {
      guard error.code != .inUse else { return nil }
      return NodeStatus.Problem(.pendingAdoption(error))
    }
  }
}

extension AccountsDirectory {
  /// Ascending.
  fileprivate func storesWithLocalWrites() throws(KithError) -> [StoreIdentifier] {
    guard try KithError.mapping(DeviceDirectory.findsDevice(local)) else { return [] }
    let device = try KithError.mapping(DeviceDirectory.openCopy(of: local))
    defer { try? device.close() }
    return try Storage.load(device).stores.filter { !$0.value.draftedWrites.isEmpty }
      .map(\.key).sorted()
  }
}
