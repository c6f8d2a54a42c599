internal import KithCore
internal import KithCrypto

/// A device of the run: keys, host's clock, disk and, while it runs, process.
final class SimulatedDevice {
  let number: DeviceNumber
  let name: String
  let keys: DeviceKeys
  var disk: SimulatedDisk
  var clock = HostClock()
  var isClockSynchronised = false
  /// Copies of the disk, oldest first.
  var backups: [SimulatedDisk] = []
  /// The device that this one's directory was copied from.
  let original: DeviceNumber?
  /// Whether it was started from a copy that its storage did not notice.
  var wasRestoredUnnoticed = false
  /// Whether it ever signed forged data.
  var isTraitor = false
  /// Devices that it dials.
  var targets: [DeviceNumber] = []
  /// The devices that the overlay adds now, and those of its last decision.
  var overlay: OverlayPlan?
  var drawnBefore: Set<DeviceID> = []
  /// Whether it restarted from an old copy, so that it covers less than it said.
  var wasRestored = false
  var bytesPerSecond: Int?

  /// While it joins: it does not exist yet, and nothing is left if that breaks off.
  var join: Join?
  var inviter: DeviceID?
  /// Earlier writes of its host, in the local stores until they are emptied.
  var local: [StoreIdentifier: [LocalWrite]] = [:]
  /// Those that were adopted durably.
  var adopted: Set<StoreIdentifier> = []
  /// Adoptions under way.
  var adoptions: [WriteID: StoreIdentifier] = [:]

  // The state of the process.

  /// Counts the processes of the device.
  var life = 0
  var shell: Shell?
  var process = ProcessID(Digest128 { _ in })
  var isPaused = false
  /// Events during a stop.
  var held: [Event] = []
  /// Writes and marks that its program waits for.
  var awaited: Set<UInt64> = []
  /// Whether the shell's work begins in a moment.
  var isDrainPlanned = false
  /// The mutations that a commit under way is writing.
  var writing: [Mutation] = []
  /// Effects after which the process dies, and for how long it is dead.
  var fuse: (effects: Int, downMicroseconds: UInt64)?
  /// When the shell is woken.
  var wakesAt: UInt64?

  // Its program's knowledge.

  /// Policies under which the program opened its stores.
  var opened: [StoreIdentifier: Policy] = [:]
  /// The view, made from view changes alone.
  var views: [StoreIdentifier: [Key: EncodedValue]] = [:]
  /// Refusals that the program was told of: the write and its content.
  var told: [StoreIdentifier: [Refusal]] = [:]
  /// Whether the directory was given up: data only there is lost.
  var isGone = false
  /// Its beliefs of other devices' coverage that were compared with the truth.
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
  }

  var replica: Replica? { shell?.replica }
  var isRunning: Bool { shell != nil }
  /// Whether the disk refused a commit and has taken none since.
  var isFailing: Bool { shell?.health.problem != nil }

  /// Names the process of a device that another believes something of.
  struct Belief: Hashable {
    var device: DeviceNumber
    var life: Int
  }

  /// How a device joins.
  struct Join {
    var inviter: DeviceNumber
    var session: SessionID
  }
}
