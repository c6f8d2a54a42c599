import FoundationEssentials
import Glibc
import Kith
import KithStorage
import KithTerminal

struct DiskCheck: Check {
  static let name = "disk"

  /// If the disk has less free space, a node soon fails to write: a full store, its log, and as much
  /// again.
  static let leastFreeBytes = 16 << 20
  /// In seconds; a slower write is noticeable in every `set`.
  static let slowWrite = 0.1
  private static let rounds = 5
  private static let writeBytes = 4_096

  struct Sight: Equatable, Sendable {
    /// Bytes that this user may still write.
    var freeBytes: Int?
    /// The kernel's name for the file system.
    var kind: String?
    var isReadOnly = false
    /// The median.
    var writeSeconds: Double?
    /// `errno`.
    var writeFailure: Int32?
  }

  func look(at target: DiagnosisTarget) -> Sight {
    // A directory that does not exist yet will be on its parent's file system.
    var path = target.directory
    while access(path, F_OK) != 0, path.count > 1 {
      path = Files.parent(of: path)
    }
    var sight = Sight()
    var status = statvfs()
    if statvfs(path, &status) == 0 {
      sight.freeBytes = Int(
        clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
          .partialValue)
      sight.isReadOnly = status.f_flag & UInt(ST_RDONLY) != 0
    }
    if let resolved = realpath(path, nil) {
      let mounts = try? InputText.text(of: "/proc/self/mountinfo")
      sight.kind = mounts.flatMap { MountTable.kind(of: String(cString: resolved), in: $0) }
      free(resolved)
    }
    Self.timeWrites(in: path, &sight)
    return sight
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    [freeSpace(sight), write(sight), kind(sight)].compactMap(\.self)
  }

  private func freeSpace(_ sight: Sight) -> Finding? {
    guard let freeBytes = sight.freeBytes else { return nil }
    let tried = "asked for the free space"
    guard freeBytes >= Self.leastFreeBytes else {
      return finding(
        .problem, tried: tried, seen: Format.bytes(freeBytes),
        advice:
          "free some space: a node wants \(Format.bytes(Self.leastFreeBytes)); without any, writes fail, "
          + "and go on by themselves once there is some")
    }
    return finding(.good, tried: tried, seen: Format.bytes(freeBytes))
  }

  private func write(_ sight: Sight) -> Finding {
    let tried = "\(Self.rounds) durable writes of \(Format.bytes(Self.writeBytes))"
    if sight.isReadOnly {
      return finding(
        .problem, tried: "tried to write", seen: "the file system is mounted read-only",
        advice: "see dmesg for a damaged disk; mount it writable, or give another --directory")
    }
    if let code = sight.writeFailure {
      let advice =
        switch code {
        case ENOSPC, EDQUOT: "free space; existing data can be read meanwhile"
        case EACCES, EPERM: "see to the modes: ls -ld on the directory and those above it"
        default: "see dmesg for a damaged disk"
        }
      return finding(
        .problem, tried: "tried to write", seen: String(cString: strerror(code)), advice: advice)
    }
    let seconds = sight.writeSeconds ?? 0
    let seen = "\(Format.duration(seconds: seconds)) each, the median"
    guard seconds <= Self.slowWrite else {
      return finding(
        .note, tried: tried, seen: seen,
        advice: "slow: every durable write waits so long; use a faster disk where that is felt")
    }
    return finding(.good, tried: tried, seen: seen)
  }

  private func kind(_ sight: Sight) -> Finding? {
    guard let kind = sight.kind else { return nil }
    let tried = "asked for the kind of file system"
    let advice: String? =
      switch kind {
      case "tmpfs", "ramfs":
        "it is in memory, and gone at the next start of the host: give another --directory"
      case "overlay":
        "if this is a container's own layer, it goes when the container goes: mount a volume there"
      case "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "virtiofs":
        "it is on another host, which must keep locks and durable writes; a local disk is better"
      case let kind where kind.hasPrefix("fuse"):
        "whether it keeps locks and durable writes is its program's to say; a local disk is better"
      default: nil
      }
    return finding(advice == nil ? .good : .note, tried: tried, seen: kind, advice: advice)
  }

  /// Measures the median of writes to a file without a name, which disappears with its descriptor.
  private static func timeWrites(in directory: String, _ sight: inout Sight) {
    // open(2): __O_TMPFILE, which Swift's Glibc lacks.
    let unnamed = 0o20000000 | O_DIRECTORY
    var file = open(directory, unnamed | O_WRONLY | O_CLOEXEC, 0o600)
    if file < 0, errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL {
      // The file system lacks such files: use a named one, and remove the name at once.
      let path = "\(directory)/.kith-doctor-\(getpid())"
      file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      if file >= 0 { unlink(path) }
    }
    guard file >= 0 else { return sight.writeFailure = errno }
    defer { close(file) }
    let bytes = [UInt8](repeating: 0x6B, count: writeBytes)
    var seconds: [Double] = []
    for round in 0..<rounds {
      let begun = ContinuousClock.now
      guard pwrite(file, bytes, bytes.count, round * bytes.count) == bytes.count,
        fdatasync(file) == 0
      else { return sight.writeFailure = errno == 0 ? ENOSPC : errno }
      seconds.append((ContinuousClock.now - begun) / .seconds(1))
    }
    sight.writeSeconds = seconds.sorted()[rounds / 2]
  }
}

/// proc(5), `/proc/self/mountinfo`.
enum MountTable {
  /// `path` must be without symbolic links.
  static func kind(of path: String, in table: String) -> String? {
    var best: (point: String, kind: String)?
    for line in table.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard let separator = fields.firstIndex(of: "-"), separator + 1 < fields.count,
        fields.count > 4
      else { continue }
      let point = unescaped(fields[4])
      let isAbove = point == "/" || path == point || path.hasPrefix(point + "/")
      // A later mount at the same point hides the earlier one.
      if isAbove, point.utf8.count >= best?.point.utf8.count ?? 0 {
        best = (point, String(fields[separator + 1]))
      }
    }
    return best?.kind
  }

  static func points(in table: String) -> [String] {
    table.split(separator: "\n").compactMap { line in
      let fields = line.split(separator: " ")
      return fields.count > 4 ? unescaped(fields[4]) : nil
    }
  }

  /// Decodes the octal escapes of white space and backslashes.
  static func unescaped(_ text: Substring) -> String {
    var result = String(text)
    for (escape, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
      result = result.replacing(escape, with: character)
    }
    return result
  }
}
