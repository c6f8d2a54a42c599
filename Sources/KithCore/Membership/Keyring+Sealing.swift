package import KithCrypto

extension Keyring {
  /// Makes lockboxes of the newest ``MembershipLimits/epochsAtJoining`` open epochs, newest first.
  /// Empty if the device's box key is of low order.
  package func lockboxes(
    for device: Certificate, account: AccountID, keys: DeviceKeys,
    entropy: inout some Entropy
  ) -> [Record] {
    lockboxes(
      for: device, account: account, signing: keys.signing,
      atMost: MembershipLimits.epochsAtJoining,
      entropy: &entropy)
  }

  /// Makes lockboxes for members that lack open epochs: newest epoch first, then by device; at most
  /// ``MembershipLimits/lockboxesAtOnce``.
  package func lockboxesForMembersWithoutEpochs(
    in roster: Roster, keys: DeviceKeys, entropy: inout some Entropy
  ) -> [Record] {
    var records: [Record] = []
    for (epoch, device) in lacks(in: roster).prefix(MembershipLimits.lockboxesAtOnce) {
      if let record = Self.lockbox(
        epoch, for: device, account: roster.account, signing: keys.signing, entropy: &entropy)
      {
        records.append(record)
      }
    }
    return records
  }

  func isLacked(in roster: Roster) -> Bool { !lacks(in: roster).isEmpty }

  private func lacks(in roster: Roster) -> [(EpochKeys, Certificate)] {
    let states = roster.epochStates()
    let members = roster.sortedMembers
    // In a roster full of lockboxes, each new one displaces another, which would be made again.
    let isFull = roster.lockboxCount >= MembershipLimits.lockboxes
    return (isFull ? newestFirst.filter { $0.id == current?.id } : newestFirst).flatMap { epoch in
      members.filter { member in
        states[epoch.id]?.recipients.contains(member.device) == false
          && (try? SharedBox(epoch.box, with: member.boxKey)) != nil
      }.map { (epoch, $0) }
    }
  }

  /// Makes a new epoch after the newest open ones (`Docs/Protocol/duties.md`, "New epochs and
  /// lockboxes"). Members beyond ``MembershipLimits/recipients`` get lockboxes. Nil without a
  /// genesis, and after the last generation.
  package func nextEpoch(
    for roster: Roster, keys: DeviceKeys, entropy: inout some Entropy
  ) -> [Record]? {
    guard let genesis = roster.genesis else { return nil }
    let (generation, isPastLast) = next.generation.addingReportingOverflow(1)
    guard !isPastLast else { return nil }
    let secret = EpochSecret(random: &entropy)
    let epoch = EpochKeys(secret: secret, generation: generation)
    let members = roster.sortedMembers
    guard
      let record = Self.record(
        of: epoch, parents: Array(next.parents.prefix(MembershipLimits.parents)),
        recipients: Array(members.prefix(MembershipLimits.recipients)), genesis: genesis,
        account: roster.account, signing: keys.signing, entropy: &entropy)
    else { return nil }
    return [record]
      + members.dropFirst(MembershipLimits.recipients).compactMap {
        Self.lockbox(
          epoch, for: $0, account: roster.account, signing: keys.signing, entropy: &entropy)
      }
  }

  func lockboxes(
    for device: Certificate, account: AccountID, signing: borrowing SigningKey,
    atMost limit: Int = .max, entropy: inout some Entropy
  ) -> [Record] {
    var records: [Record] = []
    for epoch in newestFirst.prefix(limit) {
      if let record = Self.lockbox(
        epoch, for: device, account: account, signing: signing, entropy: &entropy)
      {
        records.append(record)
      }
    }
    return records
  }

  /// Leaves out recipients whose box key is of low order. Nil if the recovery key is.
  static func record(
    of epoch: EpochKeys, parents: [EpochID], recipients: [Certificate], genesis: Genesis,
    account: AccountID, signing: borrowing SigningKey, entropy: inout some Entropy
  ) -> Record? {
    guard let recovery = epoch.sealed(to: genesis.recoveryBoxKey, entropy: &entropy) else {
      return nil
    }
    var secrets: [SealedSecret] = []
    for recipient in recipients.sorted(by: { $0.device < $1.device }) {
      guard let box = epoch.sealed(to: recipient.boxKey, entropy: &entropy) else { continue }
      secrets.append(SealedSecret(device: recipient.device, box: box))
    }
    let body = RecordBody.encode(
      EpochRecord(
        parents: parents, generation: epoch.generation, boxPublicKey: epoch.box.publicKey,
        recipients: secrets, recoverySecret: recovery))
    return try? Record(body: body, signatures: []).signed(by: signing, account: account)
  }

  private static func lockbox(
    _ epoch: EpochKeys, for device: Certificate, account: AccountID,
    signing: borrowing SigningKey, entropy: inout some Entropy
  ) -> Record? {
    guard let box = epoch.sealed(to: device.boxKey, entropy: &entropy) else { return nil }
    let body = RecordBody.encode(
      LockboxRecord(epoch: epoch.id, secret: SealedSecret(device: device.device, box: box)))
    return try? Record(body: body, signatures: []).signed(by: signing, account: account)
  }
}
