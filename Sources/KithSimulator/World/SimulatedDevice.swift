internal import KithCore
internal import KithCrypto

final class SimulatedDevice {
  let number: DeviceNumber
  let name: String
  let keys: DeviceKeys
  var disk: SimulatedDisk
  var clock = HostClock()
  var isClockSynchronised = false
  /// Copies of the disk, oldest first.
  var backups: [SimulatedDisk] = []
  /// The device whose directory was copied to make this one.
  let original: DeviceNumber?
  /// Whether its disk was copied or restored without its storage noticing.
  var wasRestoredUnnoticed = false
  /// Whether it ever signed forged data.
  var isTraitor = false
  var targets: [DeviceNumber] = []
  var overlay: OverlayPlan?
  var drawnBefore: Set<DeviceID> = []
  /// Its processes since it restarted from an old copy: it covers less than those before said. Nil:
  /// it never did.
  var processesSinceRestore: Set<UInt64>?
  var bytesPerSecond: Int?
  /// Devices of other networks never meet.
  var network = 0
  var carriers: [CarrierNumber] = []
  /// How its next objects lie.
  var lie: Lie?
  /// The last check of the data that a fresh device covers by each carrier.
  var checkedHeld: [CarrierNumber: HeldCheck] = [:]

  /// While joining, the device does not exist yet; if that breaks off, nothing is left.
  var join: Join?
  var inviter: DeviceID?
  /// Earlier writes of its host, until the local stores are emptied.
  var local: [StoreIdentifier: [LocalWrite]] = [:]
  var adopted: Set<StoreIdentifier> = []
  /// Adoptions under way.
  var adoptions: [WriteID: StoreIdentifier] = [:]

  /// The run of its host.
  var boot: BootID

  // The state of the process.

  /// Counts the processes of the device.
  var life = 0
  var shell: Shell?
  var process = ProcessID(Digest128 { _ in })
  var isPaused = false
  /// Events during a pause.
  var held: [Event] = []
  /// Writes and barriers that its program waits for.
  var awaited: Set<UInt64> = []
  var isDrainPlanned = false
  /// The mutations of the commit under way, until they are written.
  var writing: [Mutation] = []
  /// Whether messages went out whose commit is not synced yet.
  var hasSentUnsynced = false
  /// The latest clock of change sets that were sent and that this disk lost, and the host's clock then.
  var lost: (disk: SimulatedDisk, clock: HybridTime, wallMilliseconds: UInt64)?
  /// How the sync under way ends.
  var syncEnd = SyncEnd.succeeds
  /// Effects until the process dies, and how long it is dead.
  var fuse: (effects: Int, downMicroseconds: UInt64)?
  /// The latest operation on each carrier, and whether one is under way.
  var operations: [CarrierNumber: (number: Int, isUnderWay: Bool)] = [:]
  /// How long it is off once its last turns are over.
  var goesOffFor: UInt64?
  /// When the shell is woken, by the monotonic clock.
  var wakesAt: UInt64?

  // Its program's knowledge.

  /// The policies under which the program opened its stores.
  var opened: [StoreIdentifier: Policy] = [:]
  /// Made from view changes alone.
  var views: [StoreIdentifier: [Key: EncodedValue]] = [:]
  var seenRefusals: [StoreIdentifier: [Refusal]] = [:]
  /// Whether the directory was given up: data that only it has is lost.
  var isGone = false
  /// Beliefs about others' coverage that were already compared with the truth.
  var checkedBeliefs: [StoreIdentifier: [Belief: [ChainID: UInt64]]] = [:]

  /// Its published sequences.
  var given: [StoreIdentifier: [ChainID: [UInt64: Digest256]]] = [:]

  init(
    number: DeviceNumber, name: String, keys: DeviceKeys, disk: SimulatedDisk,
    original: DeviceNumber? = nil
  ) {
    self.number = number
    self.name = name
    self.keys = keys
    self.disk = disk
    self.original = original
    boot = BootID(Digest128 { _ in })
  }

  var replica: Replica? { shell?.replica }
  var isRunning: Bool { shell != nil }
  var isFailing: Bool { shell?.health.problem != nil }

  /// The process of a device that another has a belief about.
  struct Belief: Hashable {
    var device: DeviceNumber
    var life: Int
  }

  struct HeldCheck: Hashable {
    var vectors: [StoreIdentifier: [ChainID: UInt64]]
    var changes: Int
    /// How many devices it knew to be revoked.
    var revocations: Int
  }

  struct Join {
    var inviter: DeviceNumber
    var session: SessionID
  }
}

/// How a sync ends.
enum SyncEnd: Equatable {
  case succeeds
  case fails
  /// The process dies, and mostly its host.
  case crashes(downMicroseconds: UInt64)
}
