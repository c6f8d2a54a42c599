internal import Dispatch
internal import Glibc

/// Finds a directory's node: the one that serves it, or one that is opened here.
package enum NodeConnector {
  /// Close the node after use.
  package typealias Connected = (
    node: any NodeAccess, close: @Sendable () throws(KithError) -> Void
  )

  /// Connects to the node that serves a directory, or opens the directory, as
  /// ``connectOrOpen(_:attaches:insists:mayBeMade:waiting:answering:onEnd:)`` does. If `needsNode`, it
  /// throws `notRunning` rather than open the directory.
  package static func connectOrOpen(
    _ configuration: Node.Configuration, needsNode: Bool, mayBeMade: Bool,
    waiting wait: Duration, answering limit: Duration? = nil
  ) async throws(KithError) -> Connected {
    let kind = try await BlockingThread.run { () throws(KithError) -> ActiveDevice.Kind in
      if needsNode {
        return .attached(try RemoteNode.reach(configuration.directory))
      }
      return try connectOrOpen(
        configuration, attaches: false, mayBeMade: mayBeMade, waiting: wait,
        answering: limit ?? LocalLimits.connect)
    }
    switch kind {
    case .own(let node): return (node, { () throws(KithError) in try node.close() })
    case .attached(let node): return (node, { () throws(KithError) in node.close() })
    }
  }

  /// Connects to the node that serves a directory, or opens the directory. It blocks while another
  /// process has the directory open without serving it: that process may be starting, ending, or a
  /// short command. A process that serves it has the time `answering` for its first answer.
  ///
  /// If `attaches`, it may open stores at another process's node, and `onEnd` is called when that
  /// node ends. If `insists`, that node is asked to yield. If `mayBeMade`, another process may be
  /// making the device.
  ///
  /// - Throws: ``KithError`` as ``Node/open(_:)`` and ``RemoteNode/connect(to:attaches:within:onEnd:)``
  ///   do.
  static func connectOrOpen(
    _ configuration: Node.Configuration, attaches: Bool = true, insists: Bool = false,
    mayBeMade: Bool = false, waiting wait: Duration,
    answering limit: Duration = LocalLimits.connect,
    onEnd: @escaping @Sendable () -> Void = {}
  ) throws(KithError) -> ActiveDevice.Kind {
    let directory = configuration.directory
    let release = DirectoryWait(directory, within: wait)
    while true {
      var isBrokenOff = false
      if !insists {
        do throws(KithError) {
          return .attached(
            try RemoteNode.connect(
              to: directory, attaches: attaches, within: limit, onEnd: onEnd))
        } catch {
          // A node that is about to end breaks off.
          isBrokenOff = error.code == .closed
          guard error.code == .notRunning || isBrokenOff else { throw error }
        }
      }
      do throws(KithError) {
        return .own(try Node(opening: configuration))
      } catch {
        guard error.code == .inUse || mayBeMade && error.code == .missing else { throw error }
        if insists, isRefused(directory) { throw error }
        guard release.wait() else { throw isBrokenOff ? RemoteNode.brokenOff(directory) : error }
      }
    }
  }
}

extension NodeConnector {
  /// Whether a node serves the directory, and does not yield it.
  private static func isRefused(_ directory: String) -> Bool {
    guard let owner = try? RemoteNode.connect(to: directory, attaches: false) else { return false }
    defer { owner.close() }
    do throws(KithError) {
      try owner.askToYield()
      return false
    } catch {
      return error.code == .inUse
    }
  }

  /// Attaches to the node to which the directory was yielded; nil if none serves it in time.
  static func attach(
    afterYield directory: String, waiting wait: Duration, onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> ActiveDevice.Kind? {
    let release = DirectoryWait(directory, within: wait)
    repeat {
      do throws(KithError) {
        return .attached(try RemoteNode.connect(to: directory, attaches: true, onEnd: onEnd))
      } catch {
        guard error.code == .notRunning || error.code == .closed else { throw error }
      }
    } while release.wait()
    return nil
  }
}

extension NodeConnector {
  /// Waits until a node serves a directory, or until none does; false if the time passed first.
  package static func wait(
    for directory: String, toBeServed isServed: Bool, within limit: Duration
  ) async throws(KithError) -> Bool {
    await BlockingThread.run {
      let release = DirectoryWait(directory, within: limit)
      while serves(directory) != isServed { guard release.wait() else { return false } }
      return true
    }
  }

  private static func serves(_ directory: String) -> Bool {
    guard let node = try? RemoteNode.connect(to: directory, attaches: false) else { return false }
    node.close()
    return true
  }
}

/// Waits until another process releases a directory or serves it. A killed process signals nothing,
/// so this also looks every second.
final class DirectoryWait {
  private static let longestLook = Duration.seconds(1)

  private let directory: String
  private let deadline: ContinuousClock.Instant
  private let mayHaveCome = DispatchSemaphore(value: 0)
  private var watch: DirectoryWatch?

  init(_ directory: String, within limit: Duration) {
    self.directory = directory
    deadline = .now + limit
  }

  deinit { watch?.cancel() }

  /// Blocks until a new attempt is worthwhile; false once the time is over.
  func wait() -> Bool {
    let remaining = deadline - .now
    guard remaining > .zero else { return false }
    let mayHaveCome = mayHaveCome
    if watch == nil {
      watch = DirectoryWatch(directory) { mayHaveCome.signal() }
      // The change may have come just before the watch.
      if watch != nil { return true }
    }
    _ = mayHaveCome.wait(timeout: .now() + min(remaining, Self.longestLook).dispatch)
    return true
  }
}

/// Watches for a new list of accounts, a new control socket, or a released lock: inotify(7).
final class DirectoryWatch {
  private let source: any DispatchSourceRead

  /// Calls `onChange` on a queue after one or more changes. Nil if the kernel has no watch left.
  init?(_ directory: String, onChange: @escaping @Sendable () -> Void) {
    let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    guard descriptor >= 0 else { return nil }
    let kinds = UInt32(IN_MOVED_TO | IN_ATTRIB)
    guard inotify_add_watch(descriptor, directory, kinds) >= 0 else {
      close(descriptor)
      return nil
    }
    source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    source.setEventHandler {
      var events = [UInt8](repeating: 0, count: 4_096)
      while read(descriptor, &events, events.count) > 0 {}
      onChange()
    }
    source.setCancelHandler { close(descriptor) }
    source.activate()
  }

  func cancel() { source.cancel() }
}
