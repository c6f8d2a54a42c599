extension RecordBody {
  /// Nil: an unknown kind.
  static func encode(_ kind: Record.Kind) -> [UInt8]? {
    switch kind {
    case .genesis(let genesis): encode(genesis)
    case .certificate(let certificate): encode(certificate)
    case .epoch(let epoch): encode(epoch)
    case .lockbox(let lockbox): encode(lockbox)
    case .revocation(let revocation): encode(revocation)
    case .rename(let rename): encode(rename)
    case .unknown: nil
    }
  }

  static func encode(_ genesis: Genesis) -> [UInt8] {
    var wire = WireGenesis()
    wire.recoverySigningKey = .init(genesis.recoverySigningKey.bytes)
    wire.recoveryBoxKey = .init(genesis.recoveryBoxKey.bytes)
    wire.firstDevice = genesis.firstDevice.wire
    return encode(.genesis(wire))
  }

  static func encode(_ certificate: Certificate) -> [UInt8] {
    encode(.certificate(certificate.wire))
  }

  static func encode(_ epoch: EpochRecord) -> [UInt8] {
    var wire = WireEpoch()
    wire.parents = epoch.parents.map { .init($0.bytes) }
    wire.generation = epoch.generation
    wire.boxPublicKey = .init(epoch.boxPublicKey.bytes)
    wire.recipients = epoch.recipients.map(\.wire)
    wire.recoverySecret = .init(epoch.recoverySecret)
    return encode(.epoch(wire))
  }

  static func encode(_ lockbox: LockboxRecord) -> [UInt8] {
    var wire = WireLockbox()
    wire.epoch = .init(lockbox.epoch.bytes)
    wire.secret = lockbox.secret.wire
    return encode(.lockbox(wire))
  }

  static func encode(_ revocation: RevocationRecord) -> [UInt8] {
    var wire = WireRevocation()
    wire.device = .init(revocation.device.bytes)
    wire.keeps = revocation.keeps.map { .init($0.bytes) }
    wire.issued = revocation.issued
    return encode(.revocation(wire))
  }

  static func encode(_ rename: RenameRecord) -> [UInt8] {
    var wire = WireRename()
    wire.device = .init(rename.device.bytes)
    wire.name = rename.name
    wire.issued = rename.issued
    return encode(.rename(wire))
  }

  private static func encode(_ kind: WireRecordBody.OneOf_Kind) -> [UInt8] {
    var wire = WireRecordBody()
    wire.kind = kind
    return wire.encodedBytes()
  }
}

extension SealedSecret {
  fileprivate var wire: WireSealedSecret {
    var wire = WireSealedSecret()
    wire.device = .init(device.bytes)
    wire.box = .init(box)
    return wire
  }
}
