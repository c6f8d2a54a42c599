import Glibc
import Kith
import NIOCore
import NIOPosix

/// The kernel's events about a directory (inotify(7)), read by NIO's event loop.
enum FolderChanges {
  private static let mask =
    UInt32(IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
    | UInt32(IN_DELETE_SELF | IN_MOVE_SELF) | UInt32(IN_ONLYDIR) | UInt32(IN_DONT_FOLLOW)

  /// Yields when the watch has begun and then for each event; events that come before the last one was
  /// taken are one. Ends when the directory goes away, or cannot be watched.
  static func stream(
    path: String, directories: [String], _ threads: BlockingThreads
  ) -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    // Looking the path up can block.
    threads.submit { mayRun in
      guard mayRun, let descriptor = watch(path: path, directories: directories) else {
        return continuation.finish()
      }
      read(descriptor, continuation)
    }
    return stream
  }

  /// Turns what a descriptor has into elements of the stream. Owns the descriptor, and closes it if no
  /// channel can be made.
  static func read(_ descriptor: CInt, _ continuation: AsyncStream<Void>.Continuation) {
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    eventLoop.execute { read(descriptor, on: eventLoop, continuation) }
  }

  private static func read(
    _ descriptor: CInt, on eventLoop: any EventLoop,
    _ continuation: AsyncStream<Void>.Continuation
  ) {
    // A channel closes the descriptor, also one that could not be set up.
    let isOfChannel = NIOLoopBoundBox(false, eventLoop: eventLoop)
    NIOPipeBootstrap(group: eventLoop)
      .channelInitializer { channel in
        isOfChannel.value = true
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(FolderEvents(continuation))
        }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .whenComplete { result in
        switch result {
        case .success(let channel):
          continuation.onTermination = { _ in channel.close(promise: nil) }
          // Nobody may want the stream any more. If somebody does, the event covers the time before
          // the watch.
          if case .terminated = continuation.yield() { channel.close(promise: nil) }
        case .failure:
          if !isOfChannel.value { close(descriptor) }
          continuation.finish()
        }
      }
  }

  /// A descriptor that has the events; nil if the directory cannot be opened or watched.
  private static func watch(path: String, directories: [String]) -> Int32? {
    guard let place = try? FolderPlace(path: path, directories: directories) else { return nil }
    let descriptor = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    guard descriptor >= 0 else { return nil }
    // The directory itself and not its path, in which a symbolic link could stand meanwhile. This
    // path is a link to it, so it must be followed.
    let held = "/proc/self/fd/\(place.directory.descriptor)/."
    guard inotify_add_watch(descriptor, held, mask) >= 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }
}

/// Turns inotify's records into elements of a stream.
private final class FolderEvents: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// `struct inotify_event`: watch, mask, cookie, length of the name.
  private static let headerBytes = 16
  private static let endings = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)

  private let continuation: AsyncStream<Void>.Continuation

  init(_ continuation: AsyncStream<Void>.Continuation) { self.continuation = continuation }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var events = unwrapInboundIn(data)
    var isChanged = false
    var isGone = false
    while events.readableBytes >= Self.headerBytes {
      events.moveReaderIndex(forwardBy: 4)
      guard let mask = events.readInteger(endianness: .host, as: UInt32.self),
        events.readInteger(as: UInt32.self) != nil,
        let length = events.readInteger(endianness: .host, as: UInt32.self),
        let name = events.readString(length: Int(length))
      else { break }
      isGone = isGone || mask & Self.endings != 0
      // If the kernel dropped events, anything may have changed.
      isChanged = isChanged || mask & UInt32(IN_Q_OVERFLOW) != 0
      isChanged = isChanged || ObjectNames.isObject(name.prefix { $0 != "\0" })
    }
    if isChanged || isGone { continuation.yield() }
    if isGone { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) { continuation.finish() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
