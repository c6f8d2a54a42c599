package import KithCrypto

/// Founds the account of a simulation or a test from one seed.
package struct Founder {
  package struct Member {
    package var keys: DeviceKeys
    package var snapshot: Snapshot
  }

  package let account: AccountID
  package private(set) var members: [Member] = []
  /// The records that all members know.
  package let roster: Roster

  /// The first device creates the account, the others join it empty.
  package init(devices: Int, entropy: inout SeededEntropy) {
    let first = Self.makeKeys(&entropy)
    let recovery = RecoveryKey(entropy: &entropy)
    do {
      let (account, records) = try Account.create(
        recovery: recovery, keys: first, name: "device 0", issued: 1, entropy: &entropy)
      self.account = account
      var roster = Roster(account: account)
      _ = roster.learn(all: records)
      var keyring = Keyring()
      keyring.refresh(from: roster, keys: first)
      var all = [first]
      for index in 1..<max(1, devices) {
        let keys = Self.makeKeys(&entropy)
        let accepted = try JoinRequest.accept(
          JoinRequest.make(account: account, keys: keys, name: "device \(index)", issued: 2),
          roster: roster, keyring: keyring, keys: first, entropy: &entropy)
        _ = roster.learn(all: accepted)
        all.append(keys)
      }
      self.roster = roster
      // The records are encoded once, and shared.
      let snapshot = Self.snapshot(roster)
      for keys in all { members.append(Member(keys: keys, snapshot: snapshot)) }
    } catch {
      preconditionFailure("an account of our own making is refused: \(error)")
    }
  }

  package static func snapshot(_ roster: Roster) -> Snapshot {
    var snapshot = Snapshot()
    for record in roster.records { snapshot.records[record.id] = record.encoded }
    return snapshot
  }

  package static func makeKeys(_ entropy: inout SeededEntropy) -> DeviceKeys {
    DeviceKeys(
      signingSeed: SigningSeed(random: &entropy), boxSeed: BoxSeed(random: &entropy),
      transport: TransportPrivateKey(random: &entropy))
  }
}
