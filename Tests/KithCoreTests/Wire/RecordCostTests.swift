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
    while records.take(inbound.recordCost, at: 5) { taken += 1 }
    #expect(taken == Limits.recordBurstBytes / inbound.size)
    let later = [6, 5_000, .max].map { records.take(inbound.recordCost, at: $0) }
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
    while records.take(inbound.recordCost, at: 5) { taken += 1 }
    #expect(taken == Limits.recordBurstBytes / Limits.recordsMessageCost)
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
