internal import Glibc
internal import NIOCore

/// A connection to the control socket for a thread that may block. The descriptor never blocks:
/// every wait is a `poll` with a deadline.
struct ControlStream {
  /// What came of reading.
  enum Received {
    case bytes
    case nothing
    case end
  }

  /// The socket. Whoever has the stream closes it.
  let descriptor: Int32
  private var bytes = ByteBuffer()
  private var decoder = LineDecoder()

  /// Takes a socket that does not block.
  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Connects, sees that the other end is this user's, sends a request and reads the first answer.
  /// A node that is busy is asked again until the deadline.
  ///
  /// - Throws: ``KithError`` with `notRunning` where nobody answers, `timedOut`, or what the node
  ///   answers.
  static func open(
    _ path: String, _ request: ControlRequest, until deadline: SuspendingClock.Instant
  ) throws(KithError) -> (stream: ControlStream, first: ControlResponse) {
    let line = try encode(request)
    while true {
      if let answered = try attempt(path, line, until: deadline) {
        guard let error = answered.first.error?.error else { return answered }
        answered.stream.close()
        // Turned away, before the request was looked at.
        guard answered.first.id == 0 else { throw error }
      }
      guard SuspendingClock.now + AttachedLimits.retry < deadline else { throw timedOut(path) }
      usleep(UInt32(AttachedLimits.retry / .microseconds(1)))
    }
  }

  /// One connection; nil where the node has no room for it at this moment.
  private static func attempt(
    _ path: String, _ line: ByteBuffer, until deadline: SuspendingClock.Instant
  ) throws(KithError) -> (stream: ControlStream, first: ControlResponse)? {
    guard let descriptor = try ControlSocket.connect(to: path) else { return nil }
    var stream = ControlStream(descriptor: descriptor)
    do throws(KithError) {
      guard ControlSocket.isSameUser(descriptor: descriptor) else {
        throw ControlSocket.servedByAnother(path)
      }
      var unsent = line
      while try !send(&unsent, to: descriptor) {
        guard stream.wait(for: POLLOUT, until: deadline) else { throw timedOut(path) }
      }
      let first = try stream.nextResponse(path, until: deadline)
      return (stream, first)
    } catch {
      stream.close()
      throw error
    }
  }

  /// Waits for a line.
  ///
  /// - Throws: ``KithError`` with `timedOut` or `control`.
  mutating func nextResponse(
    _ path: String, until deadline: SuspendingClock.Instant
  ) throws(KithError) -> ControlResponse {
    while true {
      if let line = try nextLine() {
        guard let response = ControlJSON.decode(ControlResponse.self, line) else {
          throw .malformedControl
        }
        return response
      }
      switch receive() {
      case .bytes: break
      case .nothing:
        guard wait(for: POLLIN, until: deadline) else { throw Self.timedOut(path) }
      case .end:
        throw KithError(
          .control,
          "The node stopped or closed the connection before it answered. See that it runs, and "
            + "that it is of the same version.", path: path)
      }
    }
  }

  /// A request's line.
  static func encode(_ request: ControlRequest) throws(KithError) -> ByteBuffer {
    do {
      return try ControlJSON.encode(request)
    } catch {
      throw KithError(.control, "The request cannot be encoded: \(error).", cause: error)
    }
  }

  /// Sends what the socket takes; true once nothing is left.
  ///
  /// - Throws: ``KithError`` with `control` where the connection is broken.
  static func send(_ unsent: inout ByteBuffer, to descriptor: Int32) throws(KithError) -> Bool {
    while unsent.readableBytes > 0 {
      let count = unsent.withUnsafeReadableBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count > 0 {
        unsent.moveReaderIndex(forwardBy: count)
      } else if errno == EAGAIN {
        return false
      } else if errno != EINTR {
        throw KithError(.control, "The connection broke: \(String(cString: strerror(errno))).")
      }
    }
    unsent = unsent.capacity > AttachedLimits.keptBytes ? ByteBuffer() : unsent
    unsent.clear()
    return true
  }

  /// Reads what has come.
  mutating func receive() -> Received {
    while true {
      var code: Int32 = 0
      let count = bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 65_536) {
        let count = recv(descriptor, $0.baseAddress, $0.count, 0)
        if count < 0 { code = errno }
        return max(0, count)
      }
      if count > 0 { return .bytes }
      if code == EAGAIN { return .nothing }
      if code != EINTR { return .end }
    }
  }

  /// The next whole line that has come.
  ///
  /// - Throws: ``KithError`` with `control` where a line is too long.
  mutating func nextLine() throws(KithError) -> ByteBuffer? {
    do {
      if let line = try decoder.decode(buffer: &bytes) { return line }
    } catch {
      throw .malformedControl
    }
    if bytes.readableBytes == 0 {
      bytes = bytes.capacity > AttachedLimits.keptBytes ? ByteBuffer() : bytes
      bytes.clear()
    } else {
      bytes.discardReadBytes()
    }
    return nil
  }

  /// Waits for the socket; false once the time is over.
  func wait(for events: Int32, until deadline: SuspendingClock.Instant) -> Bool {
    while true {
      let remaining = SuspendingClock.now.duration(to: deadline) / .milliseconds(1)
      guard remaining > 0 else { return false }
      var waited = pollfd(fd: descriptor, events: Int16(events), revents: 0)
      if poll(&waited, 1, Int32(min(remaining, 60_000).rounded(.up))) > 0 { return true }
    }
  }

  /// Closes the socket.
  func close() { _ = Glibc.close(descriptor) }

  /// The node has not answered in time.
  static func timedOut(_ path: String) -> KithError {
    KithError(
      .timedOut,
      "The node that has the directory open does not answer. See that it is not stopped.",
      path: path)
  }
}
