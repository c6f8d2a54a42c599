public import Kith
public import KithCore
public import KithCrypto

/// One device of a ``TestAccount``.
public struct TestDevice: Sendable {
  /// The device's number, from 0.
  public let number: Int
  let testAccount: TestAccount

  private var network: VirtualNetwork { testAccount.network }

  /// The device's id.
  public var id: DeviceID { network.host(number).keys.id }

  /// Returns a store of the device, created if it is new, as `Accounts.store(_:policy:)` does.
  ///
  /// Opening it again returns the same object, even after signing in or out.
  ///
  /// ```swift
  /// let store = try account[0].store("com.example.Editor")
  /// try store.set("dark", forKey: "theme")
  /// ```
  ///
  /// - Parameters:
  ///   - identifier: The store's identifier.
  ///   - policy: The limits, the same on all devices.
  /// - Returns: The store.
  /// - Throws: `KithError` with `invalidStoreIdentifier` or `invalidPolicy`.
  public func store(
    _ identifier: String, policy: Policy = .standard
  ) throws(KithError) -> KeyValueStore {
    let name = try Node.checked(identifier, policy)
    let host = network.host(number)
    // Opens it even if it is open, so that different limits are refused.
    let store = try (host.signedOut ?? host.device).store(name, policy: policy)
    if let known = host.stores[name] { return known.store }
    network.change(number) { $0.stores[name] = (store, policy) }
    return store
  }

  // MARK: Signing in and out

  /// Signs out, as `Accounts.signOut()` does, if the device is signed in.
  ///
  /// The device leaves its links, and its stores show local data, with the reason `accountChange`.
  ///
  /// ```swift
  /// let device = try TestAccount(devices: 2)[1]
  /// try device.signOut()
  /// try device.store("com.example.Editor").set("dark", forKey: "theme")   // local data
  /// try device.signIn()                                                   // now the account's
  /// ```
  ///
  /// - Throws: `KithError` if a store cannot be opened.
  public func signOut() throws(KithError) {
    let host = network.host(number)
    guard host.signedOut == nil else { return }
    let stores = host.local ?? makeLocalStores()
    let local = try network.make(
      stores.account, stores.keys, testAccount.drawProcess(), stores.storage)
    network.change(number) { host in
      host.local = stores
      host.signedOut = local
    }
    network.disconnectAll(of: number)
    try local.show(Array(host.stores.values), insteadOf: host.device)
  }

  /// Signs in to the account again, as `Accounts.signIn(to:)` does, if the device is signed out.
  ///
  /// The stores show the account's values, with the reasons `initialSyncChange` and
  /// `accountChange`, and the device is linked again. The account adopts writes made while
  /// signed out, except for keys that it has.
  ///
  /// - Throws: `KithError` if a store cannot be opened.
  public func signIn() throws(KithError) {
    let host = network.host(number)
    guard let local = host.signedOut, let stores = host.local else { return }
    let superseded = try host.device.adopt(from: stores.storage)
    try host.device.show(
      Array(host.stores.values), insteadOf: local, reason: .initialSyncChange,
      superseded: superseded)
    try local.close()
    network.change(number) { $0.signedOut = nil }
    network.connectAll()
  }

  private func makeLocalStores() -> VirtualNetwork.LocalStores {
    testAccount.entropy.withLock { entropy in
      let founder = Founder(devices: 1, entropy: &entropy)
      let member = founder.members[0]
      return .init(
        account: founder.account, keys: member.keys, storage: MemoryStorage(member.snapshot))
    }
  }
}
