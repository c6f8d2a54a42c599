internal import KithCrypto

/// The members of an account: a pure function of its records, in any order (`Docs/Protocol.md`,
/// "Membership"). It does not check signatures.
struct Membership: Sendable {
  /// The certificate that counts, of each known device.
  private(set) var certificates: [DeviceID: Certificate] = [:]
  /// Known devices that a known device has revoked.
  private(set) var revoked: Set<DeviceID> = []
  private(set) var revocations: [DeviceID: [Revocation]] = [:]
  /// Names from renames; they replace the certificates'.
  private(set) var names: [DeviceID: String] = [:]
  /// The devices certified by each device or the recovery key, counted or not.
  private(set) var enrolled: [SigningPublicKey: Set<DeviceID>] = [:]
  /// The devices that all revocations of a revoked device list as staying. None if it has
  /// ``MembershipLimits/revocationsOfDevice`` revocations, so it does not matter which of them a
  /// roster keeps.
  private(set) var staying: [DeviceID: Set<DeviceID>] = [:]
  /// The last step of a shortest path to each device, revoked or not. A revoked signer leads only
  /// to its ``staying`` devices.
  private(set) var paths: [DeviceID: Path] = [:]
  /// Nil until it is learnt.
  private(set) var genesis: Genesis?
  /// The records that count or are history: they are kept and relayed.
  private(set) var attached: Set<Digest256> = []

  struct Revocation: Sendable {
    var record: Digest256
    var revokers: [DeviceID]
    var issued: UInt64
  }

  struct Path: Sendable {
    var signer: SigningPublicKey
    var record: Digest256
    /// In steps; 0 for the creator.
    var length: Int
  }

  private struct Edge {
    var record: Record
    var certificate: Certificate
    var signers: [SigningPublicKey]
  }

  init() {}

  /// - Parameter records: ascending by id, which breaks all ties.
  /// - Complexity: O(*r* · *d*) for a longest path of *d*.
  init(of records: [Record]) {
    var edges: [Edge] = []
    for record in records {
      switch record.kind {
      case .genesis(let genesis):
        self.genesis = genesis
        attached.insert(record.id)
      case .certificate(let certificate):
        let signers = record.signers.filter { $0 != certificate.device }
        edges.append(Edge(record: record, certificate: certificate, signers: signers))
      default: break
      }
    }
    guard let genesis else { return }
    certify(genesis, edges)
    revoke(records)
    walk(genesis, edges)
    rename(records)
    for record in records where isAttached(record) { attached.insert(record.id) }
  }

  func isRecoveryKey(_ key: SigningPublicKey) -> Bool { key == genesis?.recoverySigningKey }

  /// Returns whether this is the recovery key, or a *known* device: one with any path, revoked or
  /// not. A record that it signed is history.
  func isKnown(_ signer: SigningPublicKey) -> Bool {
    certificates[signer] != nil || isRecoveryKey(signer)
  }

  /// Returns whether the key's signatures count.
  func isTrusted(_ signer: SigningPublicKey) -> Bool {
    isRecoveryKey(signer) || isMember(signer)
  }

  func isMember(_ device: DeviceID) -> Bool {
    paths[device] != nil && !revoked.contains(device)
  }

  /// Finds the devices with any path, ignoring revocations. If a device signed several sets of
  /// keys, the genesis counts first, then the smallest record id.
  private mutating func certify(_ genesis: Genesis, _ edges: [Edge]) {
    var known: Set<SigningPublicKey> = [
      genesis.recoverySigningKey, genesis.firstDevice.device,
    ]
    var waiting = edges
    var isMoving = true
    while isMoving {
      let count = waiting.count
      waiting.removeAll { edge in
        guard edge.signers.contains(where: known.contains) else { return false }
        known.insert(edge.certificate.device)
        return true
      }
      isMoving = waiting.count < count
    }
    certificates[genesis.firstDevice.device] = genesis.firstDevice
    for edge in edges where edge.signers.contains(where: known.contains) {
      attached.insert(edge.record.id)
      let device = edge.certificate.device
      guard device != genesis.recoverySigningKey else { continue }
      for signer in edge.signers { enrolled[signer, default: []].insert(device) }
      if certificates[device] == nil { certificates[device] = edge.certificate }
    }
  }

  private mutating func revoke(_ records: [Record]) {
    for record in records {
      guard case .revocation(let revocation) = record.kind else { continue }
      let revokers = record.signers.filter { certificates[$0] != nil }
      guard !revokers.isEmpty, certificates[revocation.device] != nil else { continue }
      revoked.insert(revocation.device)
      revocations[revocation.device, default: []].append(
        Revocation(record: record.id, revokers: revokers, issued: revocation.issued))
      let keeps = Set(revocation.keeps)
      staying[revocation.device] = staying[revocation.device]?.intersection(keeps) ?? keeps
      if revocations[revocation.device, default: []].count >= MembershipLimits.revocationsOfDevice {
        staying[revocation.device] = []
      }
    }
  }

  /// Breadth first, so all paths are shortest ones.
  private mutating func walk(_ genesis: Genesis, _ edges: [Edge]) {
    paths[genesis.firstDevice.device] = Path(
      signer: genesis.recoverySigningKey, record: Digest256(storage: .init()), length: 0)
    var waiting = edges.filter {
      certificates[$0.certificate.device]?.hasSameKeys(as: $0.certificate) ?? false
    }
    var isMoving = true
    while isMoving {
      let before = paths
      waiting.removeAll { edge in
        let device = edge.certificate.device
        guard before[device] == nil else { return true }
        let signer = edge.signers.first {
          $0 == genesis.recoverySigningKey
            || before[$0] != nil
              && (!revoked.contains($0) || staying[$0]?.contains(device) ?? false)
        }
        guard let signer else { return false }
        if paths[device] == nil {
          let length = 1 + (before[signer]?.length ?? 0)
          paths[device] = Path(signer: signer, record: edge.record.id, length: length)
        }
        return true
      }
      isMoving = paths.count > before.count
    }
  }

  /// Applies renames. The latest of each device by a trusted key counts: by time, then by record
  /// id.
  private mutating func rename(_ records: [Record]) {
    var latest: [DeviceID: UInt64] = [:]
    for record in records {
      guard case .rename(let rename) = record.kind, record.signers.contains(where: isTrusted),
        rename.issued >= latest[rename.device] ?? 0
      else { continue }
      latest[rename.device] = rename.issued
      names[rename.device] = rename.name
    }
  }

  private func isAttached(_ record: Record) -> Bool {
    switch record.kind {
    case .genesis, .certificate: attached.contains(record.id)
    case .revocation(let revocation):
      // Otherwise it has no effect, and any known device could sign any number.
      certificates[revocation.device] != nil
        && record.signers.contains { certificates[$0] != nil }
    case .epoch, .lockbox, .rename, .unknown: record.signers.contains(where: isKnown)
    }
  }
}
