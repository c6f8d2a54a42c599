internal import Glibc
internal import KithCore
internal import KithStorage

extension AttachedStore {
  /// Attaches to the node that has a directory open, whose store is begun where it is new. It
  /// blocks until the node has said what the store shows, at most ``AttachedLimits/attach``.
  ///
  /// - Parameters:
  ///   - directory: The device's directory.
  ///   - store: The store.
  ///   - policy: Its limits.
  ///   - view: What programs see already; it is told the difference as `serverChange`.
  ///   - reason: Another reason, with `accountChange` for all keys of both accounts.
  ///   - superseded: Keys whose writes the account did not take.
  ///   - pending: What the backing before it left unanswered, to be written again first. What does
  ///     not fit any more is refused, and told as `quotaViolationChange`. Each is settled.
  ///   - onEnd: Called once when the connection has ended, from no lock, unless ``stop()`` or
  ///     ``close()`` came first. It must not throw away what ``takePending()`` gives.
  /// - Returns: The store, to be closed with ``close()``.
  /// - Throws: ``KithError`` with `notRunning` where nobody answers, `timedOut`, `invalidPolicy`,
  ///   `tooManyStores`, or `control` where the node is of another version, of another user, or has
  ///   too many programs attached. Nothing of `pending` was settled then.
  static func attach(
    directory: String, store: StoreIdentifier, policy: Policy = .standard, view: StoreView? = nil,
    reason: Change.Reason = .serverChange, superseded: Set<Key> = [],
    pending: [PendingWrite] = [],
    onEnd: @escaping @Sendable (AttachedStore) -> Void = { _ in }
  ) throws(KithError) -> AttachedStore {
    let deadline = SuspendingClock.now.advanced(by: AttachedLimits.attach)
    let path = DeviceDirectory.controlSocketPath(directory)
    var request = ControlRequest(id: attachID)
    request.operation = .attach
    request.store = store.rawValue
    request.policy = ControlPolicy(policy)
    var (stream, first) = try ControlStream.open(path, request, until: deadline)
    do throws(KithError) {
      let values = try entries(&stream, first, path, until: deadline)
      let shown = AttachedState(store: store, policy: policy, values: values)
      let view = view ?? StoreView(identifier: store, values: [:])
      let attached = AttachedStore(
        directory: directory, socketPath: path, view: view, shown: shown,
        descriptor: stream.descriptor, wakeup: try wakeup(path), onEnd: onEnd)
      attached.begin(pending, reason, superseded)
      attached.startReceiving(stream)
      ExitFlush.register(attached)
      return attached
    } catch {
      stream.close()
      throw error
    }
  }

  /// All that the node shows, which may take several lines.
  private static func entries(
    _ stream: inout ControlStream, _ first: ControlResponse, _ path: String,
    until deadline: SuspendingClock.Instant
  ) throws(KithError) -> [(key: Key, value: EncodedValue?)] {
    var values: [(key: Key, value: EncodedValue?)] = []
    var response = first
    while true {
      guard response.id == attachID, let entries = response.entries else { throw .malformedControl }
      values += try NodeChange.values(entries)
      guard response.hasMore == true else { return values }
      response = try stream.nextResponse(path, until: deadline)
    }
  }

  /// What wakes the thread. A pair of sockets, since Swift's Glibc has no `pipe2`.
  private static func wakeup(_ path: String) throws(KithError) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    guard socketpair(AF_UNIX, Int32(kind), 0, &ends) == 0 else {
      throw KithError(
        .inputOutput, "No sockets could be made: \(String(cString: strerror(errno))).", path: path)
    }
    return (ends[0], ends[1])
  }

  /// Shows what the node shows, with what was left unanswered over it, and sends that again.
  private func begin(
    _ pending: [PendingWrite], _ reason: Change.Reason, _ superseded: Set<Key>
  ) {
    var refused: [(write: PendingWrite, error: KithError)] = []
    let later = state.withLock { state -> [() -> Void] in
      for write in pending {
        do throws(KithError) {
          state.lastNumber += 1
          let line = try Self.line(write.operations, id: state.lastNumber)
          _ = try state.shown.write(
            write, id: state.lastNumber, bytes: line.readableBytes, at: .now)
          state.unsent.writeImmutableBuffer(line)
        } catch {
          refused.append((write, error))
        }
      }
      let lost = Set(refused.flatMap { $0.write.operations.map { Key($0.key) } })
      return view.show(state.shown.shown, reason: reason, superseded: lost.union(superseded))
    }
    for run in later { run() }
    for (write, error) in refused { write.settle(.failure(error)) }
  }
}
