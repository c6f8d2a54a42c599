internal import KithCore
internal import KithCrypto

/// A device of the run: its keys, its host's clock, its disk and, while it runs, its process.
final class SimulatedDevice {
  let number: DeviceNumber
  let name: String
  let keys: DeviceKeys
  var disk: SimulatedDisk
  var clock = HostClock()
  var isClockSynchronised = false
  /// Copies of the disk that were put away, oldest first.
  var backups: [SimulatedDisk] = []
  /// The device that this one's directory was copied from.
  let original: DeviceNumber?
  /// Whether it was started from a copy that its storage did not tell from the original.
  var wasRestoredUnnoticed = false
  /// Whether it ever signed what its own replica would not.
  var isTraitor = false
  /// Devices that it dials.
  var targets: [DeviceNumber] = []
  /// Whom else it dials, where the overlay decides; and whom it had dialled when it last looked.
  var overlay: OverlayPlan?
  var drawnBefore: Set<DeviceID> = []
  /// Whether it was started from an old copy, so that it covers less than it said.
  var wasRestored = false
  var bytesPerSecond: Int?

  /// While it joins: it does not exist yet, and nothing of it is left if that breaks off.
  var join: Join?
  /// Through which device it joined.
  var inviter: DeviceID?
  /// What was written on its host before, in the local stores until they are emptied.
  var local: [StoreIdentifier: [LocalWrite]] = [:]
  /// What was adopted of it durably.
  var adopted: Set<StoreIdentifier> = []
  /// Adoptions under way.
  var adoptions: [WriteID: StoreIdentifier] = [:]

  // What lasts as long as the process.

  /// Counts the processes of the device.
  var life = 0
  var replica: Replica?
  var process = ProcessID(Digest128 { _ in })
  var isPaused = false
  /// Events that came while the process stood still.
  var held: [Event] = []
  /// What waits for a commit or for its turn.
  var outbox: [Effect] = []
  var hasWrites = false
  var isDraining = false
  /// What a commit under way is writing.
  var writing: [Mutation] = []
  /// Whether the disk refused a commit and is not tried yet.
  var hasFailed = false
  var failedAttempts = 0
  /// Effects after which the process dies, and for how long it is dead.
  var fuse: (effects: Int, downMicroseconds: UInt64)?
  /// When the core wants a tick.
  var tickAt: UInt64?

  // What its program knows.

  /// Policies under which the program opened its stores.
  var opened: [StoreIdentifier: Policy] = [:]
  /// What was shown, kept up by nothing but view changes.
  var views: [StoreIdentifier: [Key: EncodedValue]] = [:]
  /// Refusals that the program was told of: of which write, and what it wrote.
  var told: [StoreIdentifier: [Refusal]] = [:]
  /// Whether the directory was given up: what was only there is lost, as it must be.
  var isGone = false

  /// What it gave out under its own sequences.
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

  var isRunning: Bool { replica != nil }

  /// How a device joins.
  struct Join {
    var inviter: DeviceNumber
    /// The joiner's session.
    var session: SessionID
  }
}
