internal import Dispatch
internal import Glibc

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
