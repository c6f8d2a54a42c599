public import Kith
internal import KithCore
internal import KithCrypto
internal import Synchronization

/// An account of several devices in memory, for tests of programs.
///
/// It runs Kith's engine over a virtual network and virtual time, without directories, ports,
/// threads or waiting.
///
/// ```swift
/// let account = try TestAccount(devices: 2)
/// let (laptop, desktop) = (account[0], account[1])
/// try laptop.store("com.example.Editor").set("dark", forKey: "theme")
/// try desktop.store("com.example.Editor").value(forKey: "theme")  // "dark", at once
/// account.cut(0, 1)                                               // they are apart from here on
/// ```
/// Without faults, a write is on all linked devices when the call returns. Delays and lost
/// connections take virtual time, which passes in ``advance(by:)``. The seed decides the network's
/// random choices.
public final class TestAccount: Sendable {
  let network: VirtualNetwork
  let account: AccountID
  let entropy: Mutex<SeededEntropy>

  /// Makes an account whose devices are all linked.
  ///
  /// - Parameters:
  ///   - devices: 1 to 64. The first created the account, the others joined it empty.
  ///   - seed: Decides keys and the network's chances.
  /// - Throws: `KithError` if a device cannot be made.
  public init(devices: Int = 2, seed: UInt64 = 1) throws(KithError) {
    precondition((1...64).contains(devices), "an account for tests has 1 to 64 devices")
    var entropy = SeededEntropy(seed: seed)
    let founder = Founder(devices: devices, entropy: &entropy)
    account = founder.account
    network = VirtualNetwork(seed: seed)
    self.entropy = Mutex(entropy)
    for member in founder.members {
      try network.add(account, member.keys, drawProcess(), MemoryStorage(member.snapshot))
    }
    network.connectAll()
  }

  /// The number of devices.
  public var count: Int { network.count }

  /// Returns a device, counted from 0.
  public subscript(number: Int) -> TestDevice {
    TestDevice(number: number, testAccount: self)
  }

  /// Enrols another device, and links it with all others.
  ///
  /// ```swift
  /// let tablet = try account.join(by: 0)
  /// print(try tablet.store("com.example.Editor").keys)
  /// ```
  ///
  /// - Parameter inviter: The device that certifies it.
  /// - Returns: The new device, with all that the inviter has.
  /// - Throws: `KithError` with `network` if the inviter is signed out, or if the device cannot
  ///   be made. Then nothing of it is left.
  public func join(by inviter: Int = 0) throws(KithError) -> TestDevice {
    let host = network.host(inviter)
    let (roster, keyring) = host.device.membership
    let keys = entropy.withLock { Founder.makeKeys(&$0) }
    let records: [Record]
    do {
      records = try entropy.withLock { entropy in
        try JoinRequest.accept(
          JoinRequest.make(
            account: account, keys: keys, name: "device \(count)", issued: 3),
          roster: roster, keyring: keyring, keys: host.keys, entropy: &entropy)
      }
    } catch {
      throw KithError(.notAMember, "device \(inviter) cannot enrol another: \(error)")
    }
    var known = roster
    _ = known.learn(all: records)
    try network.join(
      account, keys, drawProcess(), MemoryStorage(Founder.snapshot(known)), by: inviter, records)
    network.connectAll()
    return self[count - 1]
  }

  func drawProcess() -> ProcessID { entropy.withLock { ProcessID($0.draw()) } }

  // MARK: Links

  /// Cuts the link between two devices, in both directions, until ``mend(_:_:)``.
  public func cut(_ one: Int, _ other: Int) { network.cut(one, other) }

  /// Mends the link between two devices; they connect at once.
  public func mend(_ one: Int, _ other: Int) { network.mend(one, other) }

  /// Cuts all links of a device.
  public func isolate(_ device: Int) {
    for other in 0..<count where other != device { network.cut(device, other) }
  }

  /// Mends all links.
  public func mendAll() {
    for one in 0..<count { for other in 0..<one { network.mend(other, one) } }
  }

  /// Sets the faults of all links from now on; without an argument, they have none.
  ///
  /// ```swift
  /// account.setFaults(delay: .milliseconds(200), loss: 0.1)
  /// account.advance(by: .seconds(5))
  /// ```
  ///
  /// - Parameters:
  ///   - delay: The time that a message takes; ``advance(by:)`` lets it pass.
  ///   - loss: The chance, 0 to 1, that a message is lost. Its connection is lost too, as in TCP.
  ///     The devices connect again a second later.
  ///   - duplication: The chance, 0 to 1, that a message is delivered twice.
  public func setFaults(delay: Duration = .zero, loss: Double = 0, duplication: Double = 0) {
    network.setFaults(.init(delay: delay, loss: loss, duplication: duplication))
  }

  /// Lets virtual time pass, and handles all events that are due in it.
  ///
  /// While the devices have rested for at least a minute, time passes as if all of them slept: in
  /// steps as long as the rest so far, after which all that became due is done. So a day without
  /// writes takes no longer than some minutes do. Lost connections, and delays above 5 s, are no rest.
  ///
  /// - Parameter duration: The time; less than a microsecond has no effect.
  public func advance(by duration: Duration) { network.advance(by: duration) }

  /// Ends a device's process as a crash does, and starts it again with its durable data.
  ///
  /// Open its stores again: those opened before belong to the dead process.
  ///
  /// ```swift
  /// try account.crash(1)
  /// print(try account[1].store("com.example.Editor").keys)
  /// ```
  ///
  /// - Throws: `KithError` if the stored data makes no device.
  public func crash(_ device: Int) throws(KithError) {
    try network.restart(device, account, drawProcess)
  }
}
