internal import KithCrypto

/// The inviter's account, id and name, in handshake message 2 of an invitation.
package struct Invitation: Hashable, Sendable {
  /// The account to join.
  package var account: AccountID
  /// The inviter.
  package var device: DeviceID
  /// The inviter's name for people.
  package var name: String

  /// Makes an invitation.
  package init(account: AccountID, device: DeviceID, name: String) {
    self.account = account
    self.device = device
    self.name = name
  }

  /// Reads an invitation; nil if the bytes are malformed or the name is not valid.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      let wire = try? WireInvitation(serializedBytes: bytes),
      let account = try? Digest256(wire.account), let device = try? DeviceID(wire.device),
      Certificate.isValidName(wire.name)
    else { return nil }
    self.init(account: AccountID(account), device: device, name: wire.name)
  }

  /// The invitation's bytes.
  package func encoded() -> [UInt8] {
    var wire = WireInvitation()
    wire.account = .init(account.bytes)
    wire.device = .init(device.bytes)
    wire.name = name
    return wire.encodedBytes()
  }
}

/// The joiner's request in handshake message 3: to sign its certificate.
package struct JoinRequestMessage: Hashable, Sendable {
  /// The joiner's certificate, signed by itself.
  package var certificate: Record

  /// Makes a request.
  package init(certificate: Record) {
    self.certificate = certificate
  }

  /// Reads a request; nil if the bytes are malformed.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      let wire = try? WireJoinRequest(serializedBytes: bytes),
      let record = try? Record(wire.certificate), case .certificate = record.kind
    else { return nil }
    certificate = record
  }

  /// The request's bytes.
  package func encoded() -> [UInt8] {
    var wire = WireJoinRequest()
    wire.certificate = certificate.wire
    return wire.encodedBytes()
  }
}

/// The joiner's message that its person confirmed.
package struct JoinConfirm: Hashable, Sendable {
  /// Makes a confirmation.
  package init() {}

  /// Reads a confirmation; nil if the bytes are malformed.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      (try? WireJoinConfirm(serializedBytes: bytes)) != nil
    else { return nil }
  }

  /// The confirmation's bytes.
  package func encoded() -> [UInt8] { WireJoinConfirm().encodedBytes() }
}

/// The inviter's answer, once a person has confirmed or declined.
package struct JoinReply: Hashable, Sendable {
  /// Whether the joiner may join.
  package var isAccepted: Bool
  /// All of the account's records, with the joiner's.
  package var records: [Record]
  /// The addresses of devices.
  package var addresses: [DeviceID: [String]]
  /// The inviter's hybrid clock, which the joiner takes over.
  package var clock: HybridTime

  /// Makes a reply.
  package init(
    isAccepted: Bool, records: [Record] = [], addresses: [DeviceID: [String]] = [:],
    clock: HybridTime = .zero
  ) {
    self.isAccepted = isAccepted
    self.records = records
    self.addresses = addresses
    self.clock = clock
  }

  /// Reads a reply; nil if the bytes are malformed or exceed the limits of a reply.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.joinReplyBytes,
      MessageOutline.joinReply.permits(bytes),
      let wire = try? WireJoinReply(serializedBytes: bytes),
      let addresses = [DeviceID: [String]](wire.addresses)
    else { return nil }
    isAccepted = wire.accepted
    records = []
    self.addresses = addresses
    clock = HybridTime(rawValue: wire.clock)
    for record in wire.records {
      guard let record = try? Record(record) else { return nil }
      records.append(record)
    }
  }

  /// The reply's bytes.
  package func encoded() -> [UInt8] {
    var wire = WireJoinReply()
    wire.accepted = isAccepted
    wire.records = records.map(\.wire)
    wire.clock = clock.rawValue
    wire.addresses = addresses.sorted { $0.key < $1.key }.map { device, addresses in
      var entry = WireDeviceAddresses()
      entry.device = .init(device.bytes)
      entry.addresses = addresses
      return entry
    }
    return wire.encodedBytes()
  }
}

/// The joiner's last message: its device exists, with everything.
package struct JoinDone: Hashable, Sendable {
  /// Makes the message.
  package init() {}

  /// The bytes of the session's message with it.
  package func encodedMessage() -> [UInt8] {
    var message = WireMessage()
    message.done = WireJoinDone()
    return message.encodedBytes()
  }
}
