@testable import KithCrypto

@testable import KithCore

/// The messages of joining, real ones that the input alters and any bytes, read by both sides.
///
/// Each message that is read encodes to bytes that read the same. An inviter verifies only requests
/// that the new device signed, and never takes keys that another device has. A joiner accepts only
/// an account that its inviter and itself are members of, and no device that is not a member.
enum JoiningRun {
  private static let joiner: DeviceKeys = {
    var random = SeededEntropy(seed: 6)
    return DeviceKeys(
      signingSeed: SigningSeed(random: &random), boxSeed: BoxSeed(random: &random),
      transport: TransportPrivateKey(random: &random))
  }()

  private static let roster: Roster = {
    var roster = Roster(account: FuzzAccount.shared.id)
    _ = roster.learn(all: FuzzAccount.shared.records)
    return roster
  }()

  private static let invitation = Invitation(
    account: FuzzAccount.shared.id, device: FuzzAccount.shared.devices[0].id, name: "0")

  private static let request: Record = {
    do {
      return try JoinRequest.make(
        account: FuzzAccount.shared.id, keys: joiner, name: "new", issued: 3)
    } catch {
      fatalError("no request: \(error)")
    }
  }()

  /// The records that the joiner needs, and others that it does not need.
  private static let records: [Record] = {
    do {
      let inviter = FuzzAccount.shared.devices[0]
      var keyring = Keyring()
      keyring.refresh(from: roster, keys: inviter)
      var entropy = SeededEntropy(seed: 7)
      let added = try JoinRequest.accept(
        request, roster: roster, keyring: keyring, keys: inviter, entropy: &entropy)
      return FuzzAccount.shared.records + added
    } catch {
      fatalError("no reply: \(error)")
    }
  }()

  private static let reply = JoinReply(
    isAccepted: true, records: records, addresses: [invitation.device: ["192.0.2.1:4114"]])

  static func run(_ input: inout FuzzInput) {
    switch input.number(below: 4) {
    case 0: ask(altered(JoinRequestMessage(certificate: request).encoded(), &input))
    case 1: answer(altered(reply.encoded(), &input))
    case 2: answer(chosen(&input).encoded())
    default: readAll(input.rest())
    }
  }

  /// A message with a few bytes altered, cut, or with more behind it.
  private static func altered(_ message: [UInt8], _ input: inout FuzzInput) -> [UInt8] {
    var bytes = message
    for _ in 0..<input.number(below: 8) where !bytes.isEmpty {
      bytes[input.uint16() % bytes.count] ^= input.byte()
    }
    switch input.number(below: 4) {
    case 0: bytes = Array(bytes.prefix(input.uint16()))
    case 1: bytes += input.rest()
    default: break
    }
    return bytes
  }

  /// A reply of some of the account's records and of another's, some without signatures.
  private static func chosen(_ input: inout FuzzInput) -> JoinReply {
    let all = records + FuzzAccount.shared.foreign
    var list: [Record] = []
    for _ in 0..<32 where !input.isAtEnd {
      let number = Int(input.byte())
      let record = all[(number & 0x3f) % all.count]
      switch number >> 6 {
      case 0: list.append(record.with(signatures: []))
      case 1: list.append(record.with(signatures: Array(record.signatures.dropFirst())))
      default: list.append(record)
      }
    }
    return JoinReply(isAccepted: true, records: list)
  }

  private static func ask(_ bytes: [UInt8]) {
    guard let message = JoinRequestMessage(decoding: bytes) else { return }
    require(JoinRequestMessage(decoding: message.encoded()) == message, "a request reads otherwise")
    guard let certificate = try? JoinRequest.verify(message.certificate, roster: roster) else {
      return
    }
    // A signature nobody can make is one over the real request.
    require(
      message.certificate.body == request.body, "what the new device did not sign was verified")
    require(certificate.device == joiner.id, "another device was verified")
  }

  private static func answer(_ bytes: [UInt8]) {
    guard let reply = JoinReply(decoding: bytes) else { return }
    require(JoinReply(decoding: reply.encoded()) == reply, "a reply reads otherwise")
    guard
      let (roster, keyring) = try? JoinRequest.check(reply, invitation: invitation, keys: joiner)
    else { return }
    let devices = Set(FuzzAccount.shared.devices.map(\.id) + [joiner.id])
    require(
      Set(roster.sortedMembers.map(\.device)).isSubset(of: devices),
      "who is no member was taken for one")
    require(roster.isMember(invitation.device) && roster.isMember(joiner.id), "not of the account")
    require(keyring.current != nil, "joined without a key")
  }

  /// Any bytes, as each message.
  private static func readAll(_ bytes: [UInt8]) {
    ask(bytes)
    answer(bytes)
    if let invitation = Invitation(decoding: bytes) {
      require(
        Invitation(decoding: invitation.encoded()) == invitation, "an invitation reads otherwise")
    }
    _ = JoinConfirm(decoding: bytes)
  }

  static var seeds: [(name: String, bytes: [UInt8])] {
    [
      ("request", [3, 0, 0, 3]), ("request altered", [3, 0, 1, 0, 9, 1, 3]),
      ("request cut", [3, 0, 0, 0, 0, 90]), ("reply", [3, 1, 0, 3]),
      ("reply altered", [3, 1, 2, 1, 9, 1, 0, 70, 4, 3]),
      ("reply of all", [3, 2] + (0..<UInt8(records.count)).map { 0x80 | $0 }),
      ("reply without a record", [3, 2] + (1..<UInt8(records.count)).map { 0x80 | $0 }),
      ("reply with others", [3, 2] + (0..<32).map { 0x80 | $0 }),
      ("reply with bad signatures", [3, 2] + (0..<UInt8(records.count)).map { 0x40 | $0 }),
      ("invitation bytes", [3, 3] + invitation.encoded()),
      ("request bytes", [3, 3] + JoinRequestMessage(certificate: request).encoded()),
      ("declined bytes", [3, 3] + JoinReply(isAccepted: false).encoded()),
    ]
  }
}
