internal import CLinux
internal import Glibc
internal import NIOCore
internal import NIOPosix

/// The kernel's messages about changed links and addresses of this host.
enum LinkChanges {
  /// Opens a socket in the network namespace of the calling thread; nil: there are no messages here.
  static func open() -> CInt? {
    let descriptor = kith_open_link_changes()
    return descriptor >= 0 ? descriptor : nil
  }

  /// Calls back after each read. Owns the descriptor, and closes it if no channel can be made. Call it
  /// on the event loop.
  static func read(
    _ descriptor: CInt, on eventLoop: any EventLoop, onChange: @escaping @Sendable () -> Void
  ) -> EventLoopFuture<any Channel> {
    // A channel closes the descriptor, also one that could not be set up.
    let isOfChannel = NIOLoopBoundBox(false, eventLoop: eventLoop)
    return NIOPipeBootstrap(group: eventLoop)
      .channelInitializer { channel in
        isOfChannel.value = true
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(LinkChangesHandler(onChange: onChange))
        }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .flatMapErrorThrowing { error in
        if !isOfChannel.value { _ = Glibc.close(descriptor) }
        throw error
      }
  }
}

private final class LinkChangesHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let onChange: () -> Void

  init(onChange: @escaping () -> Void) { self.onChange = onChange }

  func channelReadComplete(context: ChannelHandlerContext) { onChange() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
