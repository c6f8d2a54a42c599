import Glibc

/// A carrier's folder may belong to a medium or server that is not mounted. It is then on the
/// computer's own disk, and no other device sees it.
enum FolderSite {
  /// Where systems mount media and servers.
  private static let usualRoots = ["/mnt", "/media", "/run/media", "/net"]

  /// Looks at this host; see ``warning(_:mounts:fstab:)``.
  static func warning(_ path: String) -> String? {
    // An automounter mounts what is looked at.
    _ = access(path, F_OK)
    return warning(
      path, mounts: text("/proc/self/mountinfo"), fstab: text("/etc/fstab"))
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

  private static func isBelow(_ path: String, _ point: String) -> Bool {
    point != "/" && (path == point || path.hasPrefix(point + "/"))
  }

  private static func text(_ path: String) -> String? {
    guard let data = try? InputText.data(of: path) else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}
