internal import Glibc
internal import KithCore
internal import NIOCore
internal import NIOPosix

/// An interface that is up.
package struct LinkInterface: Hashable, Sendable {
  /// In network byte order.
  package struct Subnet: Hashable, Sendable {
    var address: [UInt8]
    var mask: [UInt8]

    func contains(_ other: [UInt8]) -> Bool {
      other.count == address.count
        && zip(zip(address, other), mask).allSatisfy { ($0.0 & $1) == ($0.1 & $1) }
    }
  }

  var index: UInt32
  package var name: String
  package var isLoopback: Bool
  /// An interface keeps its address when its cable is unplugged.
  package var hasCarrier = true
  /// False for tunnels. Linux's loopback supports multicast without reporting it.
  var supportsMulticast: Bool
  package var subnets: [Subnet] = []

  /// Nil if the system does not report them.
  package static func current() -> [LinkInterface]? {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return nil }
    defer { freeifaddrs(first) }
    var interfaces: [UInt32: LinkInterface] = [:]
    var next = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let name = entry.ifa_name, entry.ifa_flags & UInt32(IFF_UP) != 0,
        let address = bytes(of: entry.ifa_addr), let mask = bytes(of: entry.ifa_netmask),
        address.count == mask.count
      else { continue }
      let index = if_nametoindex(name)
      guard index != 0 else { continue }
      interfaces[
        index,
        default: LinkInterface(
          index: index, name: String(cString: name),
          isLoopback: entry.ifa_flags & UInt32(IFF_LOOPBACK) != 0,
          hasCarrier: entry.ifa_flags & UInt32(IFF_RUNNING) != 0,
          supportsMulticast: entry.ifa_flags & UInt32(IFF_MULTICAST) != 0
            && entry.ifa_flags & UInt32(IFF_POINTOPOINT) == 0)
      ].subnets.append(Subnet(address: address, mask: mask))
    }
    return interfaces.values.sorted { $0.index < $1.index }
  }

  /// Datagrams reach all hosts of the link in these families. Linux sends none over IPv6 on its
  /// loopback.
  var families: [LinkFamily] {
    LinkFamily.allCases.filter { family in
      switch family {
      case .ipv4: (supportsMulticast || isLoopback) && subnets.contains { $0.address.count == 4 }
      case .ipv6:
        supportsMulticast
          && subnets.contains { Self.isLinkLocal($0.address) && $0.address.count == 16 }
      }
    }
  }

  /// Includes link-local hosts.
  func isOnLink(_ source: [UInt8]) -> Bool {
    Self.isLinkLocal(source) || subnets.contains { $0.contains(source) }
  }

  /// `169.254.0.0/16` or `fe80::/10`.
  private static func isLinkLocal(_ address: [UInt8]) -> Bool {
    switch address.count {
    case 4: address.starts(with: [169, 254])
    case 16: address[0] == 0xFE && address[1] & 0xC0 == 0x80
    default: false
    }
  }

  private static func bytes(of address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
    guard let address else { return nil }
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    case AF_INET6:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
    default: return nil
    }
  }
}

enum LinkFamily: String, CaseIterable, Comparable, Sendable {
  case ipv4 = "IPv4"
  case ipv6 = "IPv6"

  /// IPv4 first.
  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Makes one socket for each interface and family. It is bound to the group, so it receives nothing
/// sent to this host alone.
enum LinkSocket {
  /// Linux's `IP_MULTICAST_ALL` and `IPV6_MULTICAST_ALL`, missing in Glibc's module. If on, a
  /// socket also receives groups that others joined.
  private static let multicastAll: (ipv4: CInt, ipv6: CInt) = (49, 29)

  /// Calls `received` on the event loop.
  static func open(
    _ eventLoop: any EventLoop, group: SocketAddress, key: LinkMulticast.Key, isLoopback: Bool,
    datagramBytes: Int, received: @escaping @Sendable ([UInt8], SocketAddress) -> Void
  ) -> EventLoopFuture<any Channel> {
    DatagramBootstrap(group: eventLoop)
      .channelOption(.socketOption(.so_reuseaddr), value: 1)
      .channelOption(.socketOption(.so_rcvbuf), value: .init(NetworkLimits.linkReceiveBytes))
      .channelOption(.maxMessagesPerRead, value: NetworkLimits.datagramsPerRead)
      .channelOption(
        .recvAllocator,
        // One byte more, so that a truncated datagram has a wrong size.
        value: FixedSizeRecvByteBufferAllocator(capacity: datagramBytes + 1)
      )
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            LinkHandler(datagramBytes: datagramBytes, received: received))
        }
      }
      .bind(to: group)
      .flatMap { channel in
        setOptions(channel, group: group, key: key, isLoopback: isLoopback)
          .map { channel }
          .flatMapError { error in
            channel.close().flatMapThrowing { throw error }
          }
      }
  }

  private static func setOptions(
    _ channel: any Channel, group: SocketAddress, key: LinkMulticast.Key, isLoopback: Bool
  ) -> EventLoopFuture<Void> {
    guard let socket = channel as? any SocketOptionProvider else {
      return channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }
    func set(_ level: CInt, _ name: CInt, _ value: some Sendable) -> EventLoopFuture<Void> {
      socket.unsafeSetSocketOption(
        level: .init(rawValue: level), name: .init(rawValue: name), value: value)
    }
    let options: [EventLoopFuture<Void>]
    switch group {
    case .v4(let v4):
      var request = ip_mreqn()
      request.imr_multiaddr = v4.address.sin_addr
      request.imr_ifindex = CInt(key.index)
      // Otherwise the source address is another interface's.
      if isLoopback { request.imr_address.s_addr = UInt32(0x7F00_0001).bigEndian }
      let level = CInt(IPPROTO_IP)
      options = [
        set(level, multicastAll.ipv4, CInt(0)),
        set(level, IP_MULTICAST_TTL, CInt(1)),
        set(level, IP_MULTICAST_LOOP, CInt(1)),
        set(level, IP_MULTICAST_IF, request),
        set(level, IP_ADD_MEMBERSHIP, request),
      ]
    case .v6(let v6):
      let request = ipv6_mreq(
        ipv6mr_multiaddr: v6.address.sin6_addr, ipv6mr_interface: key.index)
      let level = CInt(IPPROTO_IPV6)
      options = [
        // Kernels before 4.20 lack this option; the socket is bound to its interface anyway.
        set(level, multicastAll.ipv6, CInt(0)).recover { _ in },
        set(level, IPV6_MULTICAST_HOPS, CInt(1)),
        set(level, IPV6_MULTICAST_LOOP, CInt(1)),
        set(level, IPV6_MULTICAST_IF, CInt(key.index)),
        set(level, IPV6_ADD_MEMBERSHIP, request),
      ]
    case .unixDomainSocket:
      return channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }
    return EventLoopFuture.andAllSucceed(options, on: channel.eventLoop)
  }
}

/// Passes on datagrams of one size, up to a rate.
private final class LinkHandler: ChannelInboundHandler {
  typealias InboundIn = AddressedEnvelope<ByteBuffer>

  private let datagramBytes: Int
  private let received: @Sendable ([UInt8], SocketAddress) -> Void
  private var bucket = TokenBucket(NetworkLimits.datagramsPerSecond, per: 1_000)

  init(datagramBytes: Int, received: @escaping @Sendable ([UInt8], SocketAddress) -> Void) {
    self.datagramBytes = datagramBytes
    self.received = received
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let envelope = unwrapInboundIn(data)
    guard envelope.data.readableBytes == datagramBytes, bucket.spend(at: Dialler.now) else {
      return
    }
    received(Array(buffer: envelope.data), envelope.remoteAddress)
  }

  /// A failed send to one host does not end listening.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
