import ArgumentParser
import FoundationEssentials
import Glibc
import Kith
import KithCarriers
import KithCore
import KithTerminal

struct CarrierAddCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Use a carrier.",
    discussion: """
      folder /PATH
      webdav https://HOST[:PORT]/PATH
      s3     https://ENDPOINT/BUCKET[/PREFIX][?region=REGION][&style=host]

      Makes a directory kith1 there, and the folder itself if it is missing, but none above it; tries all operations, and waits until the running node has put \
      everything. The account's other devices learn the address and its credentials, sealed as all \
      data; not of a folder, nor of an address that is not https or lies on this computer or its link: \
      add those on each device. Status 5 if the storage cannot be used.
      """)

  /// The longest wait for the first deposit.
  private static let longestWait = Duration.seconds(120)
  private static let look = Duration.milliseconds(500)

  @OptionGroup var credentials: CarrierCredentialsOptions

  @Flag(help: "Do not tell the account's other devices.")
  var onlyHere = false

  @Option(
    help: ArgumentHelp(
      "Certificates (PEM) to trust instead of the system's. Goes with --only-here.",
      valueName: "file"),
    completion: .file())
  var authorityFile: String?

  @Flag(help: "Do not wait until the node has put everything.")
  var noWait = false

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @OptionGroup var options: CommonOptions

  @Argument(help: ArgumentHelp("The kind.", valueName: "kind"))
  var kind: CarrierAddress.Kind

  @Argument(help: ArgumentHelp("The folder's path, or the URL.", valueName: "location"))
  var location: String

  func validate() throws {
    guard authorityFile == nil || onlyHere else {
      throw ValidationError("--authority-file goes with --only-here.")
    }
    guard authorityFile == nil || kind != .folder else {
      throw ValidationError("A folder has no certificates: leave --authority-file out.")
    }
    guard !location.isEmpty else { throw ValidationError("The location is empty.") }
  }

  func run() async throws {
    _ = try options.accountDirectory()
    let address = try self.address()
    if kind == .folder { try checkFolder(address.location) }
    let isShared = !onlyHere && address.refusalFromAccount == nil
    let settings = CarrierSettings(
      kind: kind.rawValue, location: address.location,
      credentials: try credentials.text(for: address, options.console),
      authorityFile: authorityFile.map { CommonOptions.exactly($0).path }, isShared: isShared)
    let carrier = try await options.withNode(writes: true) { node in
      try await node.checkMember()
      // The device's own come first, so the account's are not in their way.
      let others = try await node.carriers().filter { $0.id != settings.id }
      guard others.count(where: { isShared || !$0.isShared }) < Limits.carriers else {
        throw CommandFailure(
          .refused, "a device uses at most \(Limits.carriers) carriers; remove one first")
      }
      if let same = others.first(where: settings.isSameFolder) {
        throw CommandFailure(
          .refused,
          "\(Columns.printable(settings.location)) is the folder of the carrier "
            + "\(Columns.printable(same.location)), by another path")
      }
      let isNew = kind == .folder && !FileManager.default.fileExists(atPath: settings.location)
      try await tryOut(settings, of: node)
      if isNew { options.console.talk("Made the folder \(Columns.printable(settings.location)).") }
      let replacesOwn = try await Self.keep(settings, on: node)
      options.console.talk(
        "Added \(settings.kind) \(Columns.printable(settings.location)), "
          + (isShared ? "for all devices of the account." : "for this device."))
      if replacesOwn {
        options.console.talk("It was this device's own before, and is the account's here too now.")
      }
      guard !noWait else { return Optional<NodeStatus.Carrier>.none }
      return try await followFirstDeposit(settings, on: node)
    }
    try report(settings, carrier)
  }

  /// Returns whether it took the place of one of this device's own, whose credentials this device
  /// would use on.
  static func keep(_ settings: CarrierSettings, on node: any NodeAccess) async throws -> Bool {
    try await node.keepCarrier(settings)
    let own = try await node.carriers().first { $0.id == settings.id && !$0.isShared }
    guard settings.isShared, let own else { return false }
    try await node.removeCarrier(own)
    return true
  }

  private func address() throws -> CarrierAddress {
    // A relative path is one of this directory.
    let location =
      kind == .folder ? CommonOptions.exactly(self.location).standardized.path : self.location
    do throws(CarrierFailure) {
      return try CarrierAddress(kind, location)
    } catch {
      throw CommandFailure(.usage, error.message)
    }
  }

  /// Refuses the device's own directory and carriers' objects, and asks about a path that may be
  /// mistyped or not mounted.
  private func checkFolder(_ path: String) throws {
    let own = options.directoryURL.path
    guard !FolderSite.isOfObjects(path) else {
      throw CommandFailure(
        .refused,
        "\(Columns.printable(path)) is in a carrier's directory kith1, which holds the objects; give "
          + "the folder that has kith1 in it")
    }
    guard !FolderSite.isSame(path, orBelow: own) else {
      throw CommandFailure(
        .refused,
        "\(Columns.printable(path)) is in the device's own directory, which no other device sees; give "
          + "a folder that the others reach too")
    }
    let relative =
      location.hasPrefix("/") ? nil : "\(location) does not begin with /, so it would be \(path)."
    for note in [FolderSite.note(path), FolderSite.emptyParentNote(path, beside: own)] {
      if let note { options.console.warn(Columns.sentence(note)) }
    }
    guard let warning = relative ?? FolderSite.warning(path) else { return }
    options.console.warn(Columns.sentence(warning))
    try Confirmation.demand(
      "Use \(Columns.printable(path)) all the same?", unless: yes, options.console)
  }

  private func tryOut(_ settings: CarrierSettings, of node: any NodeAccess) async throws {
    let place = try await options.place(of: node)
    let trial = await CarrierTrial.run(settings, in: place, makesPlace: true)
    if let problem = trial.problem {
      throw CommandFailure(.unreachable, Columns.sentence(problem))
    }
    for step in trial.steps where step.isWarning {
      options.console.warn(Columns.sentence(step.problem ?? ""))
    }
  }

  /// Waits until the new carrier holds everything, and says how far it is. Returns the carrier's last
  /// status; nil if no node uses it.
  private func followFirstDeposit(
    _ settings: CarrierSettings, on node: any NodeAccess
  ) async throws -> NodeStatus.Carrier? {
    let end = ContinuousClock.now + Self.longestWait
    let start = Moment.now
    var printed: String?
    while true {
      let status = try await node.status()
      guard status.isRunning else { return nil }
      let carrier = status.carriers.first {
        $0.kind == settings.kind && $0.location == settings.location
      }
      // The status may still have a problem of before. One without a time is not the storage's, and
      // stays: the program that runs the node uses no carriers, for one.
      let isOld = carrier?.problemMilliseconds.map { $0 < start } ?? false
      let hasFailed = carrier?.problem != nil && !isOld
      let isDone = carrier?.heldSinceMilliseconds != nil && carrier?.problem == nil || hasFailed
      if isDone || ContinuousClock.now >= end { return carrier }
      let line = carrier.map {
        $0.objects == 0
          ? "Putting everything there…"
          : "Putting everything there: \(Format.count($0.objects, "object")), \(Format.bytes($0.bytes))…"
      }
      if let line, line != printed { options.console.talk(line) }
      printed = line ?? printed
      try await node.lookAtCarriers()
      try await Task.sleep(for: Self.look)
    }
  }

  private func report(_ settings: CarrierSettings, _ carrier: NodeStatus.Carrier?) throws {
    try options.print(
      .versioned([
        "carrier": .string(settings.location), "kind": .string(settings.kind),
        "shared": .bool(settings.isShared),
        "heldSinceMilliseconds": .int(carrier?.heldSinceMilliseconds),
      ]))
    guard !noWait else { return }
    guard let carrier else {
      return options.console.talk("No node runs here; it is used once one does: kith run")
    }
    if let problem = carrier.problem { throw CommandFailure(.unreachable, problem) }
    guard carrier.heldSinceMilliseconds != nil else {
      throw CommandFailure(
        .unreachable, "the node has not put everything yet; see: kith carrier list")
    }
    options.console.talk(
      "It holds everything of this device now: \(Format.count(carrier.objects, "object")), "
        + "\(Format.bytes(carrier.bytes)).")
  }
}

extension CarrierAddress.Kind: ExpressibleByArgument {}

extension CarrierSettings {
  /// Whether both are folders, and one directory.
  fileprivate func isSameFolder(as other: CarrierSettings) -> Bool {
    kind == other.kind && kind == CarrierAddress.Kind.folder.rawValue
      && FolderSite.isSame(location, other.location)
  }
}

/// A carrier's folder may belong to a medium or server that is not mounted. It is then on the
/// computer's own disk, and no other device sees it.
enum FolderSite {
  /// The folders in which systems mount media and servers.
  private static let usualRoots = ["/mnt", "/media", "/run/media", "/net"]

  /// Looks at this host; see ``warning(_:mounts:fstab:)``.
  static func warning(_ path: String) -> String? {
    // An automounter mounts what is looked at.
    _ = access(path, F_OK)
    return warning(
      real(path), mounts: text("/proc/self/mountinfo"), fstab: text("/etc/fstab"))
  }

  /// Looks at this host; see ``note(_:mounts:)``.
  static func note(_ path: String) -> String? {
    note(real(path), mounts: text("/proc/self/mountinfo"))
  }

  /// A sentence for a person about a folder that loses its files without a mistake of anybody.
  static func note(_ path: String, mounts: String?) -> String? {
    guard let mounts, ["tmpfs", "ramfs"].contains(MountTable.kind(of: path, in: mounts)) else {
      return nil
    }
    return "\(path) is in this computer's memory: it is empty after the next start."
  }

  /// A sentence for a person if nothing is mounted at the path where something should be; else nil.
  static func warning(_ path: String, mounts: String?, fstab: String?) -> String? {
    guard let mounts else { return nil }
    let mounted = MountTable.points(in: mounts)
    let expected = (fstab ?? "").split(separator: "\n").compactMap { line -> String? in
      let fields = line.split(whereSeparator: \.isWhitespace)
      guard fields.count > 2, !fields[0].hasPrefix("#") else { return nil }
      return MountTable.unescaped(fields[1])
    }
    if let point = expected.first(where: { isBelow(path, $0) && !mounted.contains($0) }) {
      return "/etc/fstab has something to mount at \(point), and nothing is mounted there."
    }
    if MountTable.kind(of: path, in: mounts) == "autofs" {
      return "The automounter has mounted nothing at \(path)."
    }
    guard let root = usualRoots.first(where: { isBelow(path, $0) }),
      !mounted.contains(where: { isBelow(path, $0) && ($0 == root || isBelow($0, root)) })
    else { return nil }
    return "\(path) is on this computer's own disk: nothing is mounted there."
  }

  /// A sentence for a person about a new folder in an empty directory that is on the same file system
  /// as the device's own: that directory may be where a server would be mounted; else nil.
  static func emptyParentNote(_ path: String, beside device: String) -> String? {
    let path = real(path)
    let parent = URL(filePath: path).deletingLastPathComponent().path
    guard access(path, F_OK) != 0,
      let files = try? FileManager.default.contentsOfDirectory(atPath: parent), files.isEmpty,
      let system = fileSystem(of: parent), system == fileSystem(of: real(device))
    else { return nil }
    return "\(parent) is empty and on this computer's own disk: perhaps nothing is mounted there."
  }

  private static func fileSystem(of path: String) -> dev_t? {
    var info = stat()
    return stat(path, &info) == 0 ? info.st_dev : nil
  }

  /// Whether a folder, which may be missing, is the directory in which a carrier has the objects of
  /// accounts, or below it, whatever links lead there.
  static func isOfObjects(_ path: String) -> Bool {
    let path = real(path)
    let parts = path.split(separator: "/")
    if zip(parts, parts.dropFirst()).contains(where: { $0 == "kith1" && isPlace($1) }) {
      return true
    }
    let files = try? FileManager.default.contentsOfDirectory(atPath: path)
    return parts.last == "kith1" && files?.contains { isPlace($0[...]) } == true
  }

  /// Whether a name is that of an account's directory (`Docs/Protocol/carriers.md`).
  private static func isPlace(_ name: Substring) -> Bool {
    name.utf8.count == 32 && name.allSatisfy { $0.isHexDigit && $0.isASCII }
  }

  /// Whether two paths lead to one directory that is there.
  static func isSame(_ path: String, _ other: String) -> Bool {
    var (one, two) = (stat(), stat())
    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev
      && one.st_ino == two.st_ino
  }

  /// Whether a folder, which may be missing, is another one or below it, whatever links lead there.
  static func isSame(_ path: String, orBelow other: String) -> Bool {
    let (path, other) = (real(path), real(other))
    return path == other || path.hasPrefix(other + "/")
  }

  /// The path without symbolic links; those to nowhere, and the parts below them, stay.
  static func real(_ path: String) -> String {
    let url = URL(filePath: path, directoryHint: .isDirectory)
    if access(path, F_OK) == 0 || url.path == "/" { return url.resolvingSymlinksInPath().path }
    let parent = real(url.deletingLastPathComponent().path)
    return (parent == "/" ? "" : parent) + "/" + url.lastPathComponent
  }

  private static func isBelow(_ path: String, _ point: String) -> Bool {
    point != "/" && (path == point || path.hasPrefix(point + "/"))
  }

  private static func text(_ path: String) -> String? {
    guard let data = try? InputText.data(of: path) else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}
