internal import KithCrypto

/// The inviter's account, id and name, in handshake message 2.
package struct Invitation: Hashable, Sendable {
  package var account: AccountID
  package var device: DeviceID
  package var name: String

  package init(account: AccountID, device: DeviceID, name: String) {
    self.account = account
    self.device = device
    self.name = name
  }

  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      let wire = try? WireInvitation(serializedBytes: bytes),
      let account = try? Digest256(wire.account), let device = try? DeviceID(wire.device),
      Certificate.isValidName(wire.name)
    else { return nil }
    self.init(account: AccountID(account), device: device, name: wire.name)
  }

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
  /// Signed by the joiner itself.
  package var certificate: Record

  package init(certificate: Record) {
    self.certificate = certificate
  }

  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      let wire = try? WireJoinRequest(serializedBytes: bytes),
      let record = try? Record(wire.certificate), case .certificate = record.kind
    else { return nil }
    certificate = record
  }

  package func encoded() -> [UInt8] {
    var wire = WireJoinRequest()
    wire.certificate = certificate.wire
    return wire.encodedBytes()
  }
}

/// The joiner's message that its person confirmed.
package struct JoinConfirm: Hashable, Sendable {
  package init() {}

  package init?(decoding bytes: [UInt8]) {
    guard bytes.count <= MembershipLimits.pairingPayloadBytes,
      (try? WireJoinConfirm(serializedBytes: bytes)) != nil
    else { return nil }
  }

  package func encoded() -> [UInt8] { WireJoinConfirm().encodedBytes() }
}

/// The inviter's answer, after a person confirmed or declined.
package struct JoinReply: Hashable, Sendable {
  package var isAccepted: Bool
  /// The account's records, or a part that lets the joiner begin.
  package var records: [Record]
  package var addresses: [DeviceID: [String]]
  /// The inviter's hybrid clock; the joiner takes it over.
  package var clock: HybridTime

  package init(
    isAccepted: Bool, records: [Record] = [], addresses: [DeviceID: [String]] = [:],
    clock: HybridTime = .zero
  ) {
    self.isAccepted = isAccepted
    self.records = records
    self.addresses = addresses
    self.clock = clock
  }

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
  package init() {}

  package func encodedMessage() -> [UInt8] {
    var message = WireMessage()
    message.done = WireJoinDone()
    return message.encodedBytes()
  }
}
