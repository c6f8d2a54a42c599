import KithCrypto
import Testing

@testable import KithCore

/// The cost that records may cause to a node that takes them in.
struct RecordCostTests {
  private func message(of count: Int, _ fixture: Fixture) throws -> [UInt8] {
    var message = WireMessage()
    message.records = .init()
    for _ in 0..<count {
      message.records.records.append(
        try WireRecord(serializedBytes: fixture.records[0].encoded))
    }
    return message.encodedBytes()
  }

  @Test func `a message of very many signatures is malformed before one is checked`() throws {
    let fixture = try Fixture()
    let size = fixture.records[0].encoded.count + 4
    let most = Limits.recordsMessageLimitBytes / size - 1
    #expect(
      InboundMessage(decoding: try message(of: most, fixture), account: fixture.account) != nil)
    #expect(
      InboundMessage(decoding: try message(of: most + 8, fixture), account: fixture.account) == nil)
  }

  @Test func `a session brings so many records, and more as time passes`() throws {
    let fixture = try Fixture()
    let inbound = try #require(
      InboundMessage(decoding: try message(of: 40, fixture), account: fixture.account))
    var records = TokenBucket.ofRecords
    var taken = 0
    while records.spend(inbound.recordCost, at: 5) { taken += 1 }
    #expect(taken == Limits.recordBurstBytes / inbound.size)
    let later = [6, 5_000, .max].map { records.spend(inbound.recordCost, at: $0) }
    #expect(later == [false, true, true])
  }

  /// A node works out the consequences of the records of each message, however small it is.
  @Test func `each message of records counts at least so much, and one without any is malformed`()
    throws
  {
    let fixture = try Fixture()
    #expect(
      InboundMessage(decoding: try message(of: 0, fixture), account: fixture.account) == nil)
    var small = WireMessage()
    small.records.records = [WireRecord()]
    small.records.records[0].body = .init([0xa2, 0x06, 0x00])
    let inbound = try #require(
      InboundMessage(decoding: small.encodedBytes(), account: fixture.account))
    #expect(inbound.size < Limits.recordsMessageCost)
    var records = TokenBucket.ofRecords
    var taken = 0
    while records.spend(inbound.recordCost, at: 5) { taken += 1 }
    #expect(taken == Limits.recordBurstBytes / Limits.recordsMessageCost)
  }

  /// All records that a roster keeps if no device lies, each as large as it can be: no device is enrolled
  /// twice, so those that revocations keep are as many as certificates.
  private func fullRoster(_ entropy: inout SeededEntropy) throws -> [Record] {
    func ids(_ count: Int) -> [DeviceID] { (0..<count).map { _ in entropy.draw() }.sorted() }
    func secret(for device: DeviceID) -> SealedSecret {
      SealedSecret(
        device: device, box: [UInt8](repeating: 1, count: SealedSecret.boxBytes))
    }
    func certificate() throws -> Certificate {
      try #require(
        Certificate(
          device: entropy.draw(), boxKey: entropy.draw(), transportKey: entropy.draw(),
          name: String(repeating: "n", count: MembershipLimits.nameBytes), issued: 1 << 48))
    }
    func record(_ body: [UInt8], signatures: Int = 1) throws -> Record {
      try Record(
        body: body,
        signatures: (0..<signatures).map { _ in
          RecordSignature(signer: entropy.draw(), signature: entropy.draw())
        })
    }
    let genesis = Genesis(
      recoverySigningKey: entropy.draw(), recoveryBoxKey: entropy.draw(),
      firstDevice: try certificate())
    var records = [try record(RecordBody.encode(genesis), signatures: 2)]
    for _ in 0..<MembershipLimits.certificates {
      records.append(try record(RecordBody.encode(try certificate()), signatures: 2))
    }
    for _ in 0..<MembershipLimits.revocationsOfDevice {
      var kept = MembershipLimits.certificates
      for _ in 0..<MembershipLimits.certificates {
        let keeps = ids(min(kept, MembershipLimits.keeps))
        kept -= keeps.count
        records.append(
          try record(
            RecordBody.encode(
              RevocationRecord(device: entropy.draw(), keeps: keeps, issued: 1 << 48))))
      }
    }
    for _ in 0..<MembershipLimits.epochs {
      let epoch = EpochRecord(
        parents: (0..<MembershipLimits.parents).map { _ in EpochID(entropy.draw()) }.sorted(),
        generation: .max, boxPublicKey: entropy.draw(),
        recipients: ids(MembershipLimits.recipients).map(secret),
        recoverySecret: [UInt8](repeating: 1, count: SealedSecret.boxBytes))
      records.append(try record(RecordBody.encode(epoch)))
    }
    for _ in 0..<MembershipLimits.lockboxes {
      let lockbox = LockboxRecord(
        epoch: EpochID(entropy.draw()), secret: secret(for: entropy.draw()))
      records.append(try record(RecordBody.encode(lockbox)))
    }
    for _ in 0..<MembershipLimits.renames {
      let name = String(repeating: "n", count: MembershipLimits.nameBytes)
      records.append(
        try record(
          RecordBody.encode(
            RenameRecord(device: entropy.draw(), name: name, issued: 1 << 48))))
    }
    for number in 0..<MembershipLimits.unknownRecords {
      // Of a kind with the number 99.
      let content = [UInt8](
        repeating: UInt8(truncatingIfNeeded: number), count: MembershipLimits.unknownBodyBytes - 4)
      let length = [UInt8(content.count & 0x7f) | 0x80, UInt8(content.count >> 7)]
      records.append(try record([0x9a, 0x06] + length + content))
    }
    return records
  }

  /// Also a join: its session brings the records that the inviter's reply had no room for.
  @Test func `a full roster passes in one session, at once`() throws {
    let account = try Fixture().account
    var entropy = SeededEntropy(seed: 14)
    let records = try fullRoster(&entropy)
    #expect(records.count == MembershipLimits.records)
    var bucket = TokenBucket.ofRecords
    var passed = 0
    for message in records.messages() {
      let inbound = try #require(InboundMessage(decoding: message, account: account))
      guard case .records(let some) = inbound.body, bucket.spend(inbound.recordCost, at: 5) else {
        break
      }
      passed += some.count
    }
    #expect(passed == records.count)
  }

  @Test func `forged signatures do not survive the check`() throws {
    let fixture = try Fixture()
    let forged = fixture.records[0].with(
      signatures: fixture.records[0].signatures.map {
        RecordSignature(signer: $0.signer, signature: Signature(storage: .init()))
      })
    #expect(CheckedRecord(forged, account: fixture.account).record.signatures.isEmpty)
  }
}
