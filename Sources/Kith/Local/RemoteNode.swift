internal import Dispatch
internal import Glibc
internal import KithCore
internal import KithStorage
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The node of another program of this host, over one connection to its control socket.
///
/// An event loop applies changes to the views and hands over answers. A write blocks until the node
/// accepts it; its change comes before the answer, so the view shows it then.
final class RemoteNode: StoreService, NodeAccess {
  enum Outcome: Sendable {
    case answer(NodeAnswer)
    case failure(KithError)
    case event(NodeEvent)
    /// The node may have performed the request.
    case lost
    /// The node did not perform the request: it ended in order, or the request never left.
    case notPerformed
    case late
  }

  private struct Call {
    var onOutcome: @Sendable (Outcome) -> Void
    /// Whether the kernel took all of the request.
    var isSent = false
    /// Ends the request if it is not answered in time; nil: it may take any time.
    var late: Scheduled<Void>?
  }

  private struct State {
    var channel: (any Channel)?
    var hasEnded = false
    /// Whether the node ended in order.
    var isGoodbye = false
    /// Whether another process opens the directory next.
    var isYielding = false
    var lastID = 0
    /// The requests without an answer.
    var calls: [Int: Call] = [:]
    var views: [StoreIdentifier: StoreView] = [:]
    var writes = AttachedWrites()
    var followsProgress = false
  }

  let directory: String
  private let path: String
  private let identity = Mutex<(account: AccountID, device: DeviceID)?>(nil)
  private let state = Mutex(State())
  private let changed = Signal()
  private let onEnd: @Sendable () -> Void

  private init(_ directory: String, onEnd: @escaping @Sendable () -> Void) {
    self.directory = directory
    path = DeviceDirectory.controlSocketPath(directory)
    self.onEnd = onEnd
  }

  /// Not shared: a program may block any other event loop with a call.
  static let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  /// Connects to the node that has a directory open, and blocks until it answers, at most
  /// for a time. `onEnd` is called on an event loop when the connection has ended.
  ///
  /// - Throws: ``KithError`` with `notRunning` if no node answers, `closed` if the node is ending,
  ///   `timedOut`, or `control` if the node has another version or user, or too many attached
  ///   programs.
  static func connect(
    to directory: String, attaches: Bool, within limit: Duration = LocalLimits.connect,
    onEnd: @escaping @Sendable () -> Void = {}
  ) throws(KithError) -> RemoteNode {
    let node = RemoteNode(directory, onEnd: onEnd)
    let descriptor = try LocalSocket.connect(to: node.path, within: limit)
    guard LocalSocket.isSameUser(descriptor: descriptor) else {
      Glibc.close(descriptor)
      throw LocalSocket.servedByAnother(node.path)
    }
    do {
      let channel = try ClientBootstrap(group: loop)
        .channelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandlers(
              ByteToMessageHandler(FrameDecoder(limit: LocalReply.limit)), Receiver(node))
          }
        }
        .withConnectedSocket(descriptor).wait()
      node.state.withLock { $0.channel = channel }
    } catch {
      throw KithError(.control, "The control socket failed: \(error).", path: node.path)
    }
    do throws(KithError) {
      let hello = NodeCall.hello(version: LocalLimits.version, attaches: attaches)
      guard case .hello(let account, let device) = try node.ask(hello, within: limit)
      else { throw .malformedControl }
      node.identity.withLock { $0 = (account, device) }
    } catch {
      node.close()
      throw error
    }
    return node
  }

  /// Connects for requests that open no store. If the node is ending, it throws `control`.
  static func reach(_ directory: String) throws(KithError) -> RemoteNode {
    do throws(KithError) {
      return try connect(to: directory, attaches: false)
    } catch {
      throw error.code == .closed ? brokenOff(directory) : error
    }
  }

  deinit { state.withLock { $0.channel }?.close(promise: nil) }

  var account: AccountID? { identity.withLock { $0?.account } }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  var isYielding: Bool { state.withLock { $0.isYielding } }

  /// The node failed a flush, or ended without saying that all is durable. The node tells a program
  /// once, and each of its stores must hear it.
  var loss: WriteLoss? {
    state.withLock { $0.writes.loss(hasBrokenOff: $0.hasEnded && !$0.isGoodbye) }
  }

  func close() { state.withLock { $0.channel }?.close(promise: nil) }

  // MARK: Requests

  /// Returns the request's id; throws `closed` if the connection has ended. `onOutcome` is called
  /// on an event loop, with `late` if there is no answer within the limit: a stopped node never
  /// answers.
  @discardableResult
  func send(
    _ call: NodeCall, within limit: Duration? = nil,
    onOutcome: @escaping @Sendable (Outcome) -> Void
  ) throws(KithError) -> Int {
    let id = state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
    let frame = try LocalRequest(id: id, call: call).frame()
    let channel = state.withLock { state -> (any Channel)? in
      guard !state.hasEnded, let channel = state.channel else { return nil }
      let late: Scheduled<Void>? = limit.map { limit in
        channel.eventLoop.scheduleTask(in: TimeAmount(limit)) { [weak self] in
          self?.finish(id, .late)
        }
      }
      state.calls[id] = Call(onOutcome: onOutcome, late: late)
      return channel
    }
    guard let channel else { throw Self.ended }
    // Before writing: a callback that is added later may come after the connection's end.
    let sent = channel.eventLoop.makePromise(of: Void.self)
    sent.futureResult.whenSuccess { self.state.withLock { $0.calls[id]?.isSent = true } }
    channel.writeAndFlush(frame, promise: sent)
    return id
  }

  /// Blocks until the request is answered. Throws `closed` if the connection has ended and the
  /// request can be repeated elsewhere. The closures are called on an event loop, before later answers
  /// are read.
  @discardableResult
  private func ask(
    _ call: NodeCall, within limit: Duration,
    onAnswer: @escaping @Sendable (NodeAnswer) -> Void = { _ in },
    onFailure: @escaping @Sendable (KithError) -> Void = { _ in }
  ) throws(KithError) -> NodeAnswer {
    let semaphore = DispatchSemaphore(value: 0)
    let outcome = Mutex(Outcome.late)
    let id = try send(call) { result in
      switch result {
      case .answer(let answer): onAnswer(answer)
      case .failure(let error): onFailure(error)
      default: break
      }
      outcome.withLock { $0 = result }
      semaphore.signal()
    }
    if semaphore.wait(timeout: .now() + limit.dispatch) == .timedOut { take(id) }
    return try answer(outcome.withLock { $0 }, to: call)
  }

  private func answer(_ outcome: Outcome, to call: NodeCall) throws(KithError) -> NodeAnswer {
    switch outcome {
    case .answer(let answer): return answer
    case .failure(let error): throw error
    case .lost: throw call.isWrite ? unknown : Self.ended
    case .notPerformed: throw Self.ended
    case .event: throw .malformedControl
    case .late: throw LocalSocket.notAnswered(path)
    }
  }

  /// `onEvent` gets the events one after the other.
  func perform(
    _ call: NodeCall, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    do throws(KithError) {
      return try await exchange(call, onEvent)
    } catch {
      throw error.code == .closed ? Self.brokenOff(directory) : error
    }
  }

  private func exchange(
    _ call: NodeCall, _ onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> NodeAnswer {
    let (events, continuation) = AsyncStream<NodeEvent>.makeStream()
    let last = Mutex<Outcome?>(nil)
    let hasEnded = Signal()
    let id = try send(call, within: call.timeout) { outcome in
      if case .event(let event) = outcome {
        continuation.yield(event)
      } else {
        last.withLock { $0 = outcome }
        hasEnded.finish()
        continuation.finish()
      }
    }
    defer { take(id) }
    for await event in events {
      guard case .candidate = event else {
        _ = await onEvent(event)
        continue
      }
      let isAccepted = await untilFinished(hasEnded) { await onEvent(event) }
      // A question that was cancelled has no answer.
      guard let isAccepted, !Task.isCancelled, !hasEnded.isFinished else { continue }
      try send(.decide(isAccepted: isAccepted)) { _ in }
    }
    guard let outcome = last.withLock(\.self) else {
      throw KithError(.cancelled, "The request was cancelled.")
    }
    return try answer(outcome, to: call)
  }

  static func brokenOff(_ directory: String) -> KithError {
    KithError(
      .control,
      "The node stopped or closed the connection before it answered. See that it runs, that it is of "
        + "the same version, and that fewer than \(LocalLimits.waitingConnections) programs ask it at "
        + "once.", path: DeviceDirectory.controlSocketPath(directory))
  }

  static let ended = KithError(
    .closed, "The program that had the directory open has ended. Open the store again.")

  private var unknown: KithError {
    KithError(
      .timedOut,
      "The program that had the directory open ended before it answered. It may have taken the "
        + "write or not; it is not written again. Read the key, and write it again if need be.",
      path: path)
  }

  // MARK: Replies

  private func receive(_ reply: LocalReply) {
    switch reply.content {
    case .answer(let answer): finish(reply.id, .answer(answer))
    case .failure(let error): finish(reply.id, .failure(error))
    case .event(let event): state.withLock { $0.calls[reply.id] }?.onOutcome(.event(event))
    case .progress: changed.raise()
    case .goodbye(let isYielding):
      state.withLock { ($0.isGoodbye, $0.isYielding) = (true, isYielding) }
    case .changes(let store, let changes):
      guard let view = state.withLock({ $0.views[store] }) else { break }
      for run in view.apply(changes.map { $0.viewChange(of: store) }, isCallers: false) { run() }
    }
  }

  private func finish(_ id: Int, _ outcome: Outcome) { take(id)?.onOutcome(outcome) }

  /// Nobody waits for the request's answer any more. Returns nil if it had its outcome.
  @discardableResult
  private func take(_ id: Int) -> Call? {
    let call = state.withLock { $0.calls.removeValue(forKey: id) }
    call?.late?.cancel()
    return call
  }

  private func end() {
    let (calls, isGoodbye) = state.withLock { state in
      state.hasEnded = true
      defer { state.calls = [:] }
      return (state.calls, state.isGoodbye)
    }
    for call in calls.values {
      call.late?.cancel()
      call.onOutcome(isGoodbye || !call.isSent ? .notPerformed : .lost)
    }
    changed.raise()
    onEnd()
  }

  private final class Receiver: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private weak var node: RemoteNode?

    init(_ node: RemoteNode) { self.node = node }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard let reply = LocalReply(unwrapInboundIn(data)), node?.receive(reply) != nil else {
        return context.close(promise: nil)
      }
    }

    func channelInactive(context: ChannelHandlerContext) { node?.end() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      context.close(promise: nil)
    }
  }

  // MARK: Stores

  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView {
    guard let device = identity.withLock({ $0?.device }) else { throw Self.ended }
    let view = StoreView(identifier: store, device: device, values: [:])
    try open(view, policy: policy, reason: .externalChange, superseded: [])
    return view
  }

  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError) {
    guard let device = identity.withLock({ $0?.device }) else { throw Self.ended }
    try ask(.open(view.identifier, policy), within: LocalLimits.connect) { answer in
      guard case .values(let entries) = answer else { return }
      // On the event loop, so that later changes find the view.
      self.state.withLock { $0.views[view.identifier] = view }
      var shown: [Key: EncodedValue] = [:]
      for entry in entries { shown[Key(entry.key)] = entry.value }
      for run in view.show(shown, of: device, reason: reason, superseded: superseded) { run() }
    }
  }

  func release(_ view: StoreView) {
    state.withLock { state in
      if state.views[view.identifier] === view { state.views[view.identifier] = nil }
    }
  }

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) throws(KithError) {
    try ask(.write(store, operations, expecting: expecting), within: LocalLimits.write) { _ in
      self.state.withLock { $0.writes.accepted += 1 }
    }
  }

  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>
  ) throws(KithError) -> [KithError?] {
    let message = transactions.message
    do throws(KithError) {
      let answer = try ask(
        .writeEach(store, Array(message)), within: LocalLimits.write
      ) { answer in
        guard case .written(let count, let refused) = answer, refused.count < count else { return }
        self.state.withLock { $0.writes.accepted += 1 }
      }
      guard case .written(let count, let refused) = answer, (1...message.count).contains(count)
      else { throw .malformedControl }
      return (0..<count).map { refused[$0] }
    } catch {
      if error.code == .closed { throw error }
      return message.map { _ in error }
    }
  }

  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting expected: ExpectedValues
  ) async throws(KithError) {
    try await askDurably(
      .commit(store: store.rawValue, operations: operations, expecting: expected))
  }

  func undo(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue] {
    let call = NodeCall.undo(store: store.rawValue, undo)
    guard case .history(let values) = try await askDurably(call) else { throw .malformedControl }
    return values
  }

  /// Asks for a write, and waits until it is answered.
  @discardableResult
  private func askDurably(_ call: NodeCall) async throws(KithError) -> NodeAnswer {
    let outcome = await withCheckedContinuation { continuation in
      do throws(KithError) {
        try send(call, within: LocalLimits.write) { continuation.resume(returning: $0) }
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    return try answer(outcome, to: call)
  }

  func flush() throws(KithError) {
    guard let accepted = state.withLock({ $0.writes.unflushed }) else {
      if hasEnded { throw Self.ended }
      return
    }
    try ask(
      .flush, within: LocalLimits.write,
      onAnswer: { _ in self.state.withLock { $0.writes.noteDurable(accepted) } },
      onFailure: { error in self.state.withLock { $0.writes.note(error, ofFlushing: accepted) } })
  }

  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    let answer = try ask(.adopt(store, policy, writes), within: LocalLimits.write)
    guard case .keys(let keys) = answer else { throw .malformedControl }
    return Set(keys.map { Key($0) })
  }

  // MARK: Questions

  func usage(of store: StoreIdentifier) throws(KithError) -> Usage {
    guard case .usage(let usage) = try question(.usage(store: store.rawValue)) else {
      throw .malformedControl
    }
    return usage
  }

  func hiddenEntries(of store: StoreIdentifier) throws(KithError) -> [HiddenEntry] {
    guard case .hidden(let hidden) = try question(.hidden(store: store.rawValue)) else {
      throw .malformedControl
    }
    return hidden
  }

  func refusals(
    of store: StoreIdentifier, takingThrough number: UInt64?
  ) throws(KithError) -> [Refusal] {
    let call = NodeCall.refusals(store: store.rawValue, takingThrough: number)
    guard case .refusals(let refusals) = try question(call) else { throw .malformedControl }
    return refusals
  }

  func history(
    of store: StoreIdentifier, key: String?, limit: Int
  ) throws(KithError) -> [PastValue] {
    let call = NodeCall.history(store: store.rawValue, key: key, limit: limit)
    guard case .history(let values) = try question(call) else { throw .malformedControl }
    return values
  }

  func syncReport(
    of store: StoreIdentifier, within limit: Duration
  ) throws(KithError) -> SyncReport {
    guard case .syncReport(let report) = try ask(.syncReport(store), within: limit) else {
      throw .malformedControl
    }
    return report
  }

  @discardableResult
  private func question(_ call: NodeCall) throws(KithError) -> NodeAnswer {
    try ask(call, within: LocalLimits.request)
  }

  /// Asks for the directory; see ``NodeCall/yield``.
  func askToYield() throws(KithError) { try question(.yield) }

  func waitUntilComplete(
    _ store: StoreIdentifier, devices: Int?, timeout: Duration
  ) async throws(KithError) {
    let client = LocalClient(directory: directory)
    let failure = Mutex<KithError?>(nil)
    // A stopped node does not keep the timeout.
    await race([
      {
        do throws(KithError) {
          _ = try await client.waitUntilSynced(
            store.rawValue, timeout: timeout, devices: devices)
        } catch {
          failure.withLock { $0 = error }
        }
      },
      { try? await Task.sleep(for: timeout) },
    ])
    // The timeout cancels the request.
    if let error = failure.withLock(\.self), error.code != .cancelled { throw error }
  }

  var progress: Signal {
    let isNew = state.withLock { state in
      defer { state.followsProgress = true }
      return !state.followsProgress
    }
    if isNew { _ = try? send(.followProgress) { _ in } }
    return changed
  }
}
