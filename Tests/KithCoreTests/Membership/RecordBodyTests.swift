import KithCrypto
import Testing

@testable import KithCore

/// A body of a known kind has one encoding: nothing else is a record.
struct RecordBodyTests {
  private static func varint(_ value: Int) -> [UInt8] {
    value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7f) | 0x80] + varint(value >> 7)
  }

  /// The number of the kind's field, and its content without the length.
  private static func parts(_ body: [UInt8]) throws -> (tag: [UInt8], content: [UInt8]) {
    let tag = Array(body.prefix { $0 >= 0x80 }) + [try #require(body.first { $0 < 0x80 })]
    let rest = body.dropFirst(tag.count)
    let length = rest.prefix { $0 >= 0x80 }.count + 1
    return (tag, Array(rest.dropFirst(length)))
  }

  /// One of each kind.
  private static func bodies() throws -> [(String, [UInt8])] {
    var entropy = SeededEntropy(seed: 15)
    let (_, records) = try Account.create(
      recovery: recoveryKey(900), keys: deviceKeys(1), name: "first", issued: 1, entropy: &entropy)
    let device = deviceKeys(2)
    let certificate = try #require(Certificate(of: device, name: "second", issued: 2))
    let secret = SealedSecret(
      device: device.id, box: [UInt8](repeating: 1, count: SealedSecret.boxBytes))
    return [
      ("genesis", records[0].body), ("epoch", records[1].body),
      ("certificate", RecordBody.encode(certificate)),
      (
        "lockbox",
        RecordBody.encode(LockboxRecord(epoch: EpochID(entropy.draw()), secret: secret))
      ),
      (
        "revocation",
        RecordBody.encode(
          RevocationRecord(device: device.id, keeps: [deviceKeys(1).id], issued: 3))
      ),
      ("rename", RecordBody.encode(RenameRecord(device: device.id, name: "third", issued: 4))),
    ]
  }

  private func isRecord(_ body: [UInt8]) -> Bool {
    (try? Record(body: body, signatures: [])) != nil
  }

  @Test func `nothing is added to a body, and nothing in it is written at greater length`() throws {
    // A field with the number 99.
    let unknown: [UInt8] = [0x9a, 0x06, 0x01, 0x00]
    for (kind, body) in try Self.bodies() {
      let (tag, content) = try Self.parts(body)
      func isRecord(_ content: [UInt8]) -> Bool {
        self.isRecord(tag + Self.varint(content.count) + content)
      }
      #expect(isRecord(content), "\(kind)")
      #expect(!isRecord(content + unknown), "\(kind)")
      #expect(!self.isRecord(body + unknown), "\(kind)")
      #expect(!self.isRecord(unknown + body), "\(kind)")
      // The same fields twice: the last counts.
      #expect(!isRecord(content + content), "\(kind)")
      let length = Self.varint(content.count)
      let longer = length.dropLast() + [(length.last ?? 0) | 0x80, 0x00]
      #expect(!self.isRecord(tag + longer + content), "\(kind)")
    }
  }

  /// A roster has space for many small ones.
  @Test func `a body of an unknown kind is at most 1,024 bytes`() {
    for (count, isRecord) in [(1_020, true), (1_021, false)] {
      let body = [0x9a, 0x06] + Self.varint(count) + [UInt8](repeating: 0, count: count)
      #expect(self.isRecord(body) == isRecord)
    }
  }

  @Test func `a body of an unknown kind may be anything`() {
    for body in [[], [0x9a, 0x06, 0x01, 0x00], [0x9a, 0x06, 0x81, 0x00, 0x00]] as [[UInt8]] {
      #expect(isRecord(body))
    }
  }
}
