internal import CLinux
internal import Glibc
package import KithCore
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Exchanges datagrams of one size with the hosts of the same links, by multicast
/// (`Docs/Decisions/discovery.md`).
///
/// It uses every interface that is up and supports multicast, except tunnels, and loopback for
/// nodes of one host.
///
/// Nothing leaves or enters the LAN: the hop limit is 1, and a source must be on the link. A sender
/// hears itself. If no interface works, that is logged once.
package final class LinkMulticast: Sendable {
  /// Local scope (RFC 2365).
  private static let groupIPv4 = "239.255.75.104"
  /// Link-local scope, not permanent (RFC 4291, RFC 3307).
  private static let groupIPv6 = "ff12::cb69:7468"

  package struct Datagram: Sendable, Hashable {
    package var bytes: [UInt8]
    /// The sending host as ``PeerAddress`` takes it, with its zone.
    package var source: String
    /// The receiving interface.
    package var interface: String
  }

  /// One interface in one family.
  struct Key: Hashable, Comparable {
    var index: UInt32
    var family: LinkFamily

    static func < (left: Self, right: Self) -> Bool {
      (left.index, left.family) < (right.index, right.family)
    }
  }

  private struct Entry {
    var name: String
    var channel: (any Channel)?
    var problem: String?
    /// In milliseconds.
    var retryAt: UInt64 = 0
    /// How often in succession it could not be opened.
    var failures = 0
    var isOpening = false
  }

  private struct State {
    var onDatagram: (@Sendable (Datagram) -> Void)?
    var onLinksChanged: (@Sendable () -> Void)?
    var entries: [Key: Entry] = [:]
    var interfaces: [UInt32: LinkInterface] = [:]
    var timer: Scheduled<Void>?
    /// When the timer fires.
    var scansAt = NIODeadline.distantFuture
    var scannedAt = NIODeadline.uptimeNanoseconds(0)
    /// The kernel's messages about links and addresses; nil: there are none.
    var changes: (any Channel)?
    /// Whether they can be had: a socket that fails later is opened again.
    var hadChanges = false
    var hasComplained = false
  }

  private let port: UInt16
  private let datagramBytes: Int
  private let isLoopbackOnly: Bool
  private let scanInterval: TimeAmount
  let eventLoop = Bootstraps.group.next()
  private let logger: Logger
  private let state = Mutex(State())

  /// Several processes may share the port. Datagrams of another size are dropped. The interfaces
  /// are checked when the kernel says that they changed; if it says nothing, at each `scanInterval`.
  package init(
    port: UInt16, datagramBytes: Int, isLoopbackOnly: Bool = false,
    scanInterval: Duration = .seconds(5), logger: Logger
  ) {
    self.port = port
    self.datagramBytes = datagramBytes
    self.isLoopbackOnly = isLoopbackOnly
    self.scanInterval = TimeAmount(scanInterval)
    self.logger = logger
  }

  // MARK: Use

  /// Listens until ``stop()``; may be called again after it.
  ///
  /// Both closures are called on an event loop, and must not block. `onDatagram` gets at most
  /// ``NetworkLimits/datagramsPerSecond`` for a link. `onLinksChanged` is called when links or
  /// addresses have changed.
  package func start(
    onDatagram: @escaping @Sendable (Datagram) -> Void,
    onLinksChanged: @escaping @Sendable () -> Void = {}
  ) {
    state.withLock { state in
      state.onDatagram = onDatagram
      state.onLinksChanged = onLinksChanged
    }
    eventLoop.execute {
      self.followChanges()
      self.scan()
    }
  }

  /// A datagram that the system refuses is lost.
  package func send(_ bytes: [UInt8]) {
    let channels = state.withLock { state in
      state.entries.compactMap { key, entry in entry.channel.map { (key, $0) } }
    }
    for (key, channel) in channels {
      guard let group = group(key) else { continue }
      channel.writeAndFlush(
        AddressedEnvelope(remoteAddress: group, data: ByteBuffer(bytes: bytes))
      ).whenComplete { result in
        switch result {
        case .success: self.worked(key)
        case .failure(let error): self.failed(key, error)
        }
      }
    }
  }

  /// After it returns, no datagram is passed on.
  package func stop() async {
    let (timer, channels) = state.withLock { state in
      defer {
        (state.timer, state.scansAt) = (nil, .distantFuture)
        state.changes = nil
        state.onDatagram = nil
        state.onLinksChanged = nil
        state.entries = [:]
      }
      let channels = state.entries.values.compactMap(\.channel) + [state.changes].compactMap(\.self)
      return (state.timer, channels)
    }
    timer?.cancel()
    for channel in channels { try? await channel.close() }
  }

  /// A link without a problem works.
  package var links: [NodeStatus.Discovery.Link] {
    state.withLock { state in
      state.entries.sorted { $0.key < $1.key }
        .filter { $0.value.channel != nil || $0.value.problem != nil }
        .map { key, entry in
          NodeStatus.Discovery.Link(
            interface: entry.name, isLoopback: state.interfaces[key.index]?.isLoopback ?? false,
            family: key.family.rawValue, problem: entry.problem)
        }
    }
  }

  // MARK: Added and removed links

  /// Subscribes to the kernel's messages about changed links and addresses.
  private func followChanges() {
    let descriptor = kith_open_link_changes()
    guard descriptor >= 0 else { return }
    NIOPipeBootstrap(group: eventLoop)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            LinkChangesHandler { self.planAfterChange() })
        }
      }
      .takingOwnershipOfDescriptor(input: descriptor)
      .whenComplete { result in
        guard case .success(let channel) = result else {
          _ = Glibc.close(descriptor)
          return
        }
        let isWanted = self.state.withLock { state in
          guard state.onDatagram != nil, state.changes == nil else { return false }
          (state.changes, state.hadChanges) = (channel, true)
          return true
        }
        guard isWanted else { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in self.changesEnded(channel) }
      }
  }

  /// Messages were lost, or the system closed the socket.
  private func changesEnded(_ channel: any Channel) {
    let wasOurs = state.withLock { state in
      guard state.changes === channel else { return false }
      state.changes = nil
      return true
    }
    if wasOurs { plan(in: NetworkLimits.linkChangeSettling) }
  }

  /// Containers that come and go, or advertisements on the LAN, cause no more scans than a host has
  /// that is told of no changes.
  private func planAfterChange() {
    let scannedAt = state.withLock(\.scannedAt)
    plan(in: max(NetworkLimits.linkChangeSettling, scannedAt + scanInterval - .now()))
  }

  /// Plans the next scan that no change causes: when a failed link is due, and seldom otherwise.
  private func planNext() {
    let now = Dialler.now
    let wait = state.withLock { state in
      guard state.changes != nil else { return scanInterval }
      let retries = state.entries.values.filter { $0.channel == nil }.map(\.retryAt)
      guard let next = retries.min() else { return NetworkLimits.quietLinkScan }
      return .milliseconds(Int64(next > now ? next - now : 0) + 1)
    }
    plan(in: min(wait, NetworkLimits.quietLinkScan))
  }

  /// Scans after `delay`, unless that is planned sooner.
  private func plan(in delay: TimeAmount) {
    state.withLock { state in
      guard state.onDatagram != nil else { return }
      let moment = NIODeadline.now() + delay
      guard moment < state.scansAt else { return }
      state.scansAt = moment
      state.timer?.cancel()
      state.timer = eventLoop.scheduleTask(deadline: moment) { self.scan() }
    }
  }

  private func scan() {
    let isLost = state.withLock { state in
      (state.scansAt, state.scannedAt) = (.distantFuture, .now())
      return state.hadChanges && state.changes == nil && state.onDatagram != nil
    }
    if isLost { followChanges() }
    // A process without a free descriptor is told nothing, and keeps the links that it has.
    guard let interfaces = LinkInterface.current() else { return plan(in: scanInterval) }
    let now = Dialler.now
    let (closed, opening, hasMoved) = state.withLock { state -> ([any Channel], [Key], Bool) in
      guard state.onDatagram != nil else { return ([], [], false) }
      let before = state.interfaces
      state.interfaces = Dictionary(uniqueKeysWithValues: interfaces.map { ($0.index, $0) })
      var wanted: [Key: String] = [:]
      for interface in interfaces where interface.isLoopback || !isLoopbackOnly {
        for family in interface.families where wanted.count < NetworkLimits.links {
          wanted[Key(index: interface.index, family: family)] = interface.name
        }
      }
      var closed: [any Channel] = []
      for (key, entry) in state.entries where wanted[key] != entry.name {
        if let channel = entry.channel { closed.append(channel) }
        state.entries[key] = nil
      }
      var opening: [Key] = []
      for (key, name) in wanted {
        var entry = state.entries[key] ?? Entry(name: name)
        if before[key.index] != state.interfaces[key.index] {
          (entry.retryAt, entry.failures) = (0, 0)
        }
        if entry.channel == nil, !entry.isOpening, entry.retryAt <= now {
          entry.isOpening = true
          opening.append(key)
        }
        state.entries[key] = entry
      }
      // The host's addresses changed, though its sockets stay.
      return (closed, opening, !before.isEmpty && before != state.interfaces)
    }
    for channel in closed { channel.close(promise: nil) }
    if !closed.isEmpty || hasMoved { changed() }
    EventLoopFuture.andAllComplete(opening.sorted().map { open($0) }, on: eventLoop)
      .whenComplete { _ in
        self.complainIfNothingWorks()
        self.planNext()
      }
  }

  private func open(_ key: Key) -> EventLoopFuture<Void> {
    guard let group = group(key) else {
      return eventLoop.makeFailedFuture(ChannelError.unknownLocalAddress)
    }
    return LinkSocket.open(
      eventLoop, group: group, key: key, isLoopback: isLoopback(key),
      datagramBytes: datagramBytes
    ) { self.received($0, from: $1, on: key) }
    .map { channel in
      let isWanted = self.state.withLock { state in
        guard state.onDatagram != nil, state.entries[key]?.isOpening == true else { return false }
        state.entries[key]?.isOpening = false
        state.entries[key]?.channel = channel
        state.entries[key]?.problem = nil
        state.entries[key]?.failures = 0
        return true
      }
      guard isWanted else { return channel.close(promise: nil) }
      channel.closeFuture.whenComplete { _ in self.closed(key, channel) }
      self.changed()
    }
    .flatMapErrorThrowing { self.failed(key, $0) }
  }

  /// The system closes a socket after an error.
  private func closed(_ key: Key, _ channel: any Channel) {
    let wasOurs = state.withLock { state in
      guard state.entries[key]?.channel === channel else { return false }
      state.entries[key]?.channel = nil
      state.entries[key]?.retryAt = Dialler.now + NetworkLimits.linkRetryMilliseconds
      return true
    }
    guard wasOurs else { return }
    planNext()
    changed()
  }

  private func worked(_ key: Key) {
    state.withLock { state in
      state.entries[key]?.problem = nil
      state.hasComplained = false
    }
  }

  private func failed(_ key: Key, _ error: any Error) {
    let words = (error as? IOError)?.words ?? "\(error)"
    let name = state.withLock { state -> String? in
      guard var entry = state.entries[key] else { return nil }
      entry.isOpening = false
      entry.problem = words
      if entry.channel == nil {
        entry.retryAt = Dialler.now + NetworkLimits.linkRetryMilliseconds << UInt64(entry.failures)
        entry.failures = min(entry.failures + 1, NetworkLimits.doubledLinkRetries)
      }
      state.entries[key] = entry
      return entry.name
    }
    guard let name else { return }
    logger.debug(
      "no multicast on a link",
      metadata: ["interface": "\(name)", "family": "\(key.family)", "error": "\(words)"])
  }

  private func complainIfNothingWorks() {
    let complains = state.withLock { state in
      guard state.onDatagram != nil, !state.hasComplained,
        !state.entries.values.contains(where: { $0.channel != nil || $0.isOpening })
      else { return false }
      state.hasComplained = true
      return true
    }
    if complains {
      logger.info("no interface takes multicast; other devices are met at known addresses only")
    }
  }

  private func changed() { state.withLock { $0.onLinksChanged }?() }

  // MARK: Receiving

  private func received(_ bytes: [UInt8], from source: SocketAddress, on key: Key) {
    let (handler, name) = state.withLock { state in
      let address = source.ipBytes
      guard let interface = state.interfaces[key.index],
        interface.isOnLink(address)
          || state.interfaces.values.contains(where: { other in
            other.subnets.contains { $0.address == address }
          })
      else { return (nil as (@Sendable (Datagram) -> Void)?, "") }
      return (state.onDatagram, interface.name)
    }
    guard let handler, let host = IPAddressText.host(of: source) else { return }
    handler(Datagram(bytes: bytes, source: host, interface: name))
  }

  private func isLoopback(_ key: Key) -> Bool {
    state.withLock { $0.interfaces[key.index]?.isLoopback ?? false }
  }

  private func group(_ key: Key) -> SocketAddress? {
    switch key.family {
    case .ipv4:
      try? SocketAddress(ipAddress: Self.groupIPv4, port: Int(port))
    case .ipv6:
      (try? SocketAddress(ipAddress: Self.groupIPv6, port: Int(port)))?
        .onLink(key.index)
    }
  }
}

/// Calls back after each read of the kernel's messages about links and addresses.
private final class LinkChangesHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let onChange: () -> Void

  init(onChange: @escaping () -> Void) { self.onChange = onChange }

  func channelReadComplete(context: ChannelHandlerContext) { onChange() }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}
