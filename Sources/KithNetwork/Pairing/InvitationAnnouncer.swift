package import KithCore
package import Logging
internal import NIOCore
internal import Synchronization

/// Announces an invitation on the LAN. It answers nothing.
package final class InvitationAnnouncer: Sendable {
  private let link: LinkMulticast
  private let task = Mutex<RepeatedTask?>(nil)

  package init(_ link: LinkMulticast) { self.link = link }

  /// Announces now, every second, and when links change.
  package func start(_ announcement: InvitationAnnouncement) {
    let (link, bytes) = (link, announcement.encoded())
    link.start { _ in
    } onLinksChanged: {
      link.send(bytes)
    }
    let sending = link.eventLoop.scheduleRepeatedTask(
      initialDelay: .zero, delay: NetworkLimits.announcementInterval
    ) { _ in link.send(bytes) }
    task.withLock { $0 = sending }
  }

  package func stop() async {
    task.withLock { $0.take() }?.cancel()
    await link.stop()
  }
}

package final class InvitationFinder: Sendable {
  package struct Found: Hashable, Sendable {
    package var announcement: InvitationAnnouncement
    package var address: PeerAddress
  }

  private struct State {
    var known: [Found] = []
    var timer: Scheduled<Void>?
  }

  /// Each once per address, until the time is over.
  package let found: AsyncStream<Found>
  private let continuation: AsyncStream<Found>.Continuation
  private let link: LinkMulticast
  private let state = Mutex(State())

  package init(_ link: LinkMulticast) {
    self.link = link
    (found, continuation) = AsyncStream.makeStream(
      bufferingPolicy: .bufferingOldest(NetworkLimits.announcedInvitations))
  }

  /// Listens for at most the given time.
  package func start(for time: Duration) {
    link.start { self.heard($0) }
    expect(within: time)
  }

  package func expect(within time: Duration) {
    let timer = link.eventLoop.scheduleTask(in: TimeAmount(time)) { [continuation] in
      continuation.finish()
    }
    state.withLock { state in
      let last = state.timer
      state.timer = timer
      return last
    }?.cancel()
  }

  package func stop() async {
    state.withLock { $0.timer.take() }?.cancel()
    continuation.finish()
    await link.stop()
  }

  private func heard(_ datagram: LinkMulticast.Datagram) {
    guard let announcement = InvitationAnnouncement(decoding: datagram.bytes),
      let address = try? PeerAddress(host: datagram.source, port: announcement.port)
    else { return }
    let found = Found(announcement: announcement, address: address)
    let isNew = state.withLock { state in
      let ofHost = state.known.count { $0.address.host == address.host }
      guard !state.known.contains(found), state.known.count < NetworkLimits.announcedInvitations,
        ofHost < NetworkLimits.announcedInvitationsPerHost
      else { return false }
      state.known.append(found)
      return true
    }
    if isNew { continuation.yield(found) }
  }
}

extension LinkMulticast {
  /// For announcements of invitations, at the joiners' UDP port.
  package static func invitations(
    port: UInt16, isLoopbackOnly: Bool, logger: Logger
  ) -> LinkMulticast {
    LinkMulticast(
      port: port, datagramBytes: InvitationAnnouncement.byteCount, isLoopbackOnly: isLoopbackOnly,
      logger: logger)
  }
}
