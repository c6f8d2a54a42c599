internal import KithCore
internal import NIOCore
internal import Synchronization

/// One connection to the control socket, on the node's side. It answers a write at once, on the
/// event loop; other requests run on a task of the server.
///
/// Memory is bounded for any program: at most ``ChangeBuffer/limit`` changes wait, and while the
/// socket takes no bytes, no change and no request is taken.
final class LocalConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// Gives other threads access to a connection.
  final class Handle: Sendable {
    let channel: any Channel
    let hasBegun = Atomic(false)
    fileprivate let connection: NIOLoopBound<LocalConnection>
    /// Finished when the connection ends.
    fileprivate let ending = Signal()
    /// The program's answers to candidates.
    fileprivate let (decisions, decide) = AsyncStream<Bool>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    /// Whether sending of changes is queued.
    fileprivate let isDue = Atomic(false)

    fileprivate init(_ connection: LocalConnection, _ channel: any Channel) {
      self.channel = channel
      self.connection = NIOLoopBound(connection, eventLoop: channel.eventLoop)
    }

    func begin() { channel.eventLoop.execute { self.connection.value.begin() } }

    func stop() -> EventLoopFuture<Void> {
      channel.eventLoop.submit { self.connection.value.isStopped = true }
    }

    /// Says that all is durable, unless a write is unanswered: the program could not know whether
    /// it was performed.
    func sayGoodbye() -> EventLoopFuture<Void> {
      channel.eventLoop.submit {
        let connection = self.connection.value
        if connection.unansweredWrites == 0, connection.newLoss == nil {
          connection.send(connection.goodbye)
        }
      }
    }

    /// Closes the connection. If `isDurable`, says so first, and waits until the socket has taken
    /// all that was sent: closing drops the rest.
    func end(isDurable: Bool) async {
      let channel = channel
      channel.eventLoop.execute {
        guard isDurable, self.connection.value.newLoss == nil,
          let goodbye = try? self.connection.value.goodbye.frame()
        else {
          return channel.close(promise: nil)
        }
        let sent = channel.writeAndFlush(goodbye)
        self.closeUnlessInTime(sent)
        sent.whenComplete { _ in channel.close(promise: nil) }
      }
      try? await channel.closeFuture.get()
    }

    /// Waits until the socket has taken the reply. If the node ends meanwhile, the connection is
    /// closed in a while.
    private func send(_ content: LocalReply.Content, _ id: Int) async {
      guard let frame = try? LocalReply(id: id, content: content).frame() else { return }
      let sent: EventLoopFuture<Void> = channel.writeAndFlush(frame)
      await withTaskCancellationHandler {
        try? await sent.get()
      } onCancel: {
        closeUnlessInTime(sent)
      }
    }

    /// Closes the connection if the socket does not take in time what was sent: a stopped program
    /// takes no bytes.
    private func closeUnlessInTime(_ sent: EventLoopFuture<Void>) {
      let channel = channel
      // The time begins on the event loop: a busy one may run a task that is due before one that was
      // handed in earlier.
      channel.eventLoop.execute {
        let late = channel.eventLoop.scheduleTask(
          in: .milliseconds(LocalLimits.goodbyeMilliseconds)
        ) {
          channel.close(promise: nil)
        }
        sent.whenComplete { _ in late.cancel() }
      }
    }

    /// For a candidate, returns the program's decision; false if the task is cancelled first, as it
    /// is once the connection has ended.
    fileprivate func tell(_ event: NodeEvent, _ id: Int) async -> Bool {
      await send(.event(event), id)
      guard case .candidate = event else { return false }
      return await decisions.first { _ in true } ?? false
    }

    fileprivate func finish(_ reply: LocalReply, to call: NodeCall) async {
      try? await channel.eventLoop.submit {
        self.connection.value.finish(reply, to: call)
      }.get()
    }

    fileprivate func tellProgress(_ progress: Signal) async {
      await untilFinished(ending) { () -> Void? in
        for await () in progress { await self.send(.progress, 0) }
      }
    }
  }

  private struct Opened {
    let view: StoreView
    let buffer: ChangeBuffer
    let number: UInt64
  }

  private let server: LocalServer
  private let channel: any Channel
  private var handle: Handle?
  private var kind = LocalServer.Kind.waiting
  private var origin = WriteOrigin.attached(0)
  private var frames = CircularBuffer<ByteBuffer>()
  private var stores: [StoreIdentifier: Opened] = [:]
  private var followsProgress = false
  private var unanswered = 0
  fileprivate var unansweredWrites = 0
  fileprivate var isStopped = false
  private var timer: Scheduled<Void>?
  /// The number of the engine's last loss of writes that the program knows of, or that was before.
  private var knownLoss = 0

  init(server: LocalServer, channel: any Channel) {
    self.server = server
    self.channel = channel
  }

  // MARK: The channel

  func channelActive(context: ChannelHandlerContext) {
    let handle = Handle(self, channel)
    self.handle = handle
    guard let provider = channel as? any SocketOptionProvider else { return close() }
    LocalSocket.isSameUser(provider).assumeIsolated().whenComplete { [server] result in
      guard case .success(true) = result else {
        server.logger.info("another user was refused at the control socket")
        return self.close()
      }
      server.add(handle)
    }
  }

  private func begin() {
    guard channel.isActive else { return }
    kind = .short
    let channel = channel
    timer = channel.eventLoop.scheduleTask(in: .seconds(LocalLimits.helloSeconds)) {
      channel.close(promise: nil)
    }
    resume()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    frames.append(unwrapInboundIn(data))
    receiveWaiting()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    sendChanges()
    receiveWaiting()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { close() }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    for store in stores.values { store.view.unsubscribe(store.number) }
    stores = [:]
    frames = []
    guard let handle else { return }
    handle.ending.finish()
    // The server counts a connection as short before ``begin()`` comes here.
    if handle.hasBegun.load(ordering: .relaxed), kind == .waiting { kind = .short }
    server.remove(handle, kind)
    self.handle = nil
  }

  private func close() { channel.close(promise: nil) }

  private func receiveWaiting() {
    while canReceive, let frame = frames.popFirst() { receive(frame) }
    resume()
  }

  private var canReceive: Bool {
    !isStopped && channel.isWritable && unanswered < LocalLimits.unansweredRequests
  }

  private func resume() {
    let reads = canReceive && frames.isEmpty
    try? channel.syncOptions?.setOption(.autoRead, value: reads)
  }

  // MARK: Requests

  private func receive(_ frame: ByteBuffer) {
    guard let request = LocalRequest(frame) else { return close() }
    if let timer {
      timer.cancel()
      self.timer = nil
      guard case .hello(let version, let attaches) = request.call else { return close() }
      return hello(request.id, version, attaches: attaches)
    }
    do throws(KithError) {
      switch request.call {
      case .hello: close()
      case .decide(let isAccepted): handle?.decide.yield(isAccepted)
      case .open(let store, let policy): try open(store, policy, request.id)
      case .write(let store, let operations, let expected):
        guard let opened = stores[store] else { throw KithError.notOpen(store) }
        // The changes come before the answer: of a refused write too, so that the program sees what
        // the store shows instead.
        let outcome = Result { () throws(KithError) in
          try server.node.engine.write(store, operations, expecting: expected, origin: origin)
        }
        sendChanges(of: store, opened, isLast: false)
        try outcome.get()
        answer(request.id, .done)
      case .writeEach(let store, let transactions):
        guard transactions.count <= LocalLimits.transactions else { return close() }
        guard let opened = stores[store] else { throw KithError.notOpen(store) }
        let outcomes = try server.node.engine.write(store, each: transactions[...], origin: origin)
        sendChanges(of: store, opened, isLast: false)
        answer(request.id, .written(outcomes))
      case .followProgress:
        // It runs until the connection ends, and does not count as unanswered.
        guard kind == .attached, !followsProgress else { throw .malformedControl }
        followsProgress = true
        answer(request.id, .done)
        start { [progress = server.node.engine.progress] in await $0.tellProgress(progress) }
      default: try run(request)
      }
    } catch {
      fail(request.id, error)
    }
  }

  private func hello(_ id: Int, _ version: Int, attaches: Bool) {
    let node = server.node
    let hello = NodeAnswer.hello(account: node.account, device: node.device)
    guard version == LocalLimits.version else {
      return fail(
        id,
        KithError(
          .control,
          "The node speaks version \(LocalLimits.version) of the control protocol. Use the same "
            + "version of kith on both sides."))
    }
    guard attaches else { return answer(id, hello) }
    guard let origin = server.move(from: kind, to: .attached) else {
      return fail(
        id,
        KithError(
          .control,
          "\(LocalLimits.attachedConnections) programs are attached already. End one, or give this "
            + "one a device of its own."))
    }
    kind = .attached
    self.origin = origin
    knownLoss = node.engine.loss?.number ?? 0
    answer(id, hello)
  }

  /// The answer holds the shown values, and is sent before all changes.
  private func open(_ store: StoreIdentifier, _ policy: Policy, _ id: Int) throws(KithError) {
    guard kind == .attached, let handle else { throw .malformedControl }
    let view = try server.node.store(store.rawValue, policy: policy).view
    if let old = stores[store] { view.unsubscribe(old.number) }
    let buffer = ChangeBuffer(seesOwnWrites: true, own: origin) {
      guard !handle.isDue.exchange(true, ordering: .acquiringAndReleasing) else { return }
      handle.channel.eventLoop.execute { handle.connection.value.sendChanges() }
    }
    let (values, number) = view.subscribe(buffer)
    stores[store] = Opened(view: view, buffer: buffer, number: number)
    answer(id, .values(try values.operations))
  }

  /// Runs a request until it is answered or the connection ends.
  private func run(_ request: LocalRequest) throws(KithError) {
    if request.call.isLasting, kind == .short {
      guard server.move(from: .short, to: .lasting) != nil else {
        throw KithError(
          .control,
          "\(LocalLimits.lastingConnections) programs watch, invite, meet or wait already. End one, "
            + "such as a kith watch.")
      }
      kind = .lasting
    }
    let (node, origin, id) = (server.node, origin, request.id)
    unanswered += 1
    if request.call.isWrite { unansweredWrites += 1 }
    start { connection in
      let content = await untilFinished(connection.ending) { () -> LocalReply.Content? in
        do throws(KithError) {
          return .answer(
            try await node.perform(request.call, as: origin) { await connection.tell($0, id) })
        } catch {
          // The node's end cut the request short: no answer.
          return error.code == .cancelled && Task.isCancelled ? nil : .failure(error)
        }
      }
      if let content {
        await connection.finish(LocalReply(id: id, content: content), to: request.call)
      }
    }
  }

  private func start(_ job: @escaping @Sendable (Handle) async -> Void) {
    guard let handle else { return }
    server.run { await job(handle) }
  }

  /// A loss of accepted writes, perhaps of this program's, that it was not told of.
  fileprivate var newLoss: WriteLoss? {
    server.node.engine.loss.flatMap { $0.number > knownLoss ? $0 : nil }
  }

  private func finish(_ reply: LocalReply, to call: NodeCall) {
    unanswered -= 1
    if call.isWrite { unansweredWrites -= 1 }
    var reply = reply
    if case .flush = call, let loss = newLoss {
      knownLoss = loss.number
      if case .answer = reply.content {
        reply = LocalReply(id: reply.id, content: .failure(loss.error))
      }
    }
    // Changes come before the answer to their request.
    for (store, opened) in stores { sendChanges(of: store, opened, isLast: false) }
    send(reply)
    receiveWaiting()
  }

  // MARK: Sending

  private func sendChanges() {
    handle?.isDue.store(false, ordering: .sequentiallyConsistent)
    guard channel.isActive, channel.isWritable else { return }
    for (store, opened) in stores {
      sendChanges(of: store, opened)
      if opened.buffer.isFinished { close() }
    }
  }

  private func sendChanges(of store: StoreIdentifier, _ opened: Opened, isLast: Bool = true) {
    let changes = opened.view.takeAll(from: opened.buffer)
    guard !changes.isEmpty else { return }
    do throws(KithError) {
      let changes = try changes.map { change throws(KithError) in try LocalChange(change) }
      send(LocalReply(id: 0, content: .changes(store, changes)), isLast: isLast)
    } catch {
      close()
    }
  }

  private func answer(_ id: Int, _ answer: NodeAnswer) {
    send(LocalReply(id: id, content: .answer(answer)))
  }

  private func fail(_ id: Int, _ error: KithError) {
    send(LocalReply(id: id, content: .failure(error)))
  }

  fileprivate var goodbye: LocalReply {
    LocalReply(id: 0, content: .goodbye(isYielding: server.node.isYielding))
  }

  /// An answer above the limit becomes the error that says so. Unless it is the last for now, it goes
  /// out with the next, in one write to the socket: the program wakes once.
  fileprivate func send(_ reply: LocalReply, isLast: Bool = true) {
    do throws(KithError) {
      channel.write(try reply.frame(), promise: nil)
      if isLast { channel.flush() }
    } catch {
      let failure = LocalReply(id: reply.id, content: .failure(error))
      guard reply.id > 0, let frame = try? failure.frame() else { return close() }
      channel.writeAndFlush(frame, promise: nil)
    }
  }
}

extension KithError {
  /// Other stores of the connection are not concerned.
  fileprivate static func notOpen(_ store: StoreIdentifier) -> KithError {
    KithError(.control, "The program has not opened the store \(store) here. Open it first.")
  }
}
