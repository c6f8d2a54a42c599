internal import KithCore
internal import NIOCore
internal import Synchronization

/// An attached program, on the node's side: sends what its store shows and every change, and takes
/// its commits; see ``ControlRequest``.
///
/// Memory is bounded whatever the program does: of changes at most ``ChangeBuffer/limit`` wait and
/// as many are on their way, of commits ``ControlLimits/unansweredCommits``.
final class ControlAttachment: Sendable {
  typealias Lines = NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator

  /// A commit that was taken, in the order of taking.
  private struct Commit {
    var id: UInt64
    var accepted: Result<Engine.AcceptedWrite, KithError>
  }

  private struct State {
    var commits: [Commit] = []
    var answers: [ControlResponse] = []
    /// Commits whose answers were not sent.
    var unanswered = 0
    /// Whether nothing is sent any more.
    var isSilent = false
  }

  private let request: ControlRequest
  private let engine: Engine
  private let view: StoreView
  private let origin: WriteOrigin
  private let buffer: ChangeBuffer
  private let channel: any Channel
  private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private let state = Mutex(State())
  /// Raised when there is something to settle, to send, or room again.
  private let signal = Signal()

  /// Makes the node's side of a connection whose first request attaches. The origin tells its
  /// writes from those of others.
  init(
    _ request: ControlRequest, engine: Engine, view: StoreView, origin: WriteOrigin,
    channel: any Channel, outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  ) {
    self.request = request
    self.engine = engine
    self.view = view
    self.origin = origin
    self.channel = channel
    self.outbound = outbound
    buffer = ChangeBuffer(
      seesOwnWrites: true, perspective: .program(origin), raising: signal)
  }

  /// Serves until the connection ends, the node is closed, or the program breaks the protocol.
  func run(_ lines: inout Lines) async {
    let (values, number) = view.subscribe(buffer)
    defer { view.unsubscribe(number) }
    async let settling: Void = settleWhileAttached()
    async let sending: Void = sendWhileAttached(values)
    // How a connection ends is all the same to the node.
    try? await take(&lines)
    // Who sends may wait for a program that does not read.
    channel.close(promise: nil)
    signal.finish()
    _ = await (settling, sending)
  }

  // MARK: Taking

  /// Takes commits until the connection ends, or a line is something else.
  private func take(_ lines: inout Lines) async throws {
    while let line = try await lines.next() {
      guard let commit = ControlJSON.decode(ControlRequest.self, line),
        commit.operation == .commit, commit.version == ControlLimits.version,
        commit.id != request.id, commit.id != 0, (commit.store ?? request.store) == request.store
      else { return }
      guard await waitForRoom() else { return }
      let taken = Commit(id: commit.id, accepted: accept(commit.writes ?? []))
      state.withLock { state in
        state.commits.append(taken)
        state.unanswered += 1
      }
      signal.raise()
    }
  }

  private func accept(_ writes: [ControlEntry]) -> Result<Engine.AcceptedWrite, KithError> {
    do throws(KithError) {
      var operations: [KithCore.Operation] = []
      for write in writes { operations.append(try write.operation()) }
      return .success(try engine.accept(view.identifier, operations, origin: origin))
    } catch {
      return .failure(error)
    }
  }

  /// Waits until enough answers were sent; false once none will be.
  private func waitForRoom() async -> Bool {
    while !Task.isCancelled {
      let version = signal.version
      let (hasRoom, isSilent) = state.withLock {
        ($0.unanswered < ControlLimits.unansweredCommits, $0.isSilent)
      }
      if isSilent { return false }
      if hasRoom { return true }
      await signal.wait(after: version)
    }
    return false
  }

  // MARK: Settling

  /// Waits for the fate of each commit, also of those whose program is gone: the engine keeps a
  /// fate until somebody asks for it.
  private func settleWhileAttached() async {
    while true {
      let version = signal.version
      let isLast = signal.isFinished
      let commits = state.withLock { state in
        defer { state.commits = [] }
        return state.commits
      }
      for commit in commits {
        var response = ControlResponse(id: commit.id)
        do throws(KithError) {
          try await engine.settle(commit.accepted.get())
        } catch {
          response.error = ControlFailure(error)
        }
        state.withLock { $0.answers.append(response) }
        signal.raise()
      }
      guard commits.isEmpty else { continue }
      if isLast { return }
      await signal.wait(after: version)
    }
  }

  // MARK: Sending

  /// Sends until nothing more comes, or the connection breaks; then closes it, which ends the
  /// taking.
  private func sendWhileAttached(_ values: [Key: PropertyListValue]) async {
    // A connection that breaks is its program's matter.
    try? await send(values)
    channel.close(promise: nil)
    state.withLock { $0.isSilent = true }
    signal.raise()
  }

  private func send(_ values: [Key: PropertyListValue]) async throws {
    var lines = LineBatch(outbound: outbound)
    for part in try Self.parts(values.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }) {
      var response = ControlResponse(id: request.id, isLast: false)
      response.entries = part.entries
      response.hasMore = part.isLast ? nil : true
      try await lines.append(response)
    }
    try await lines.send()
    while !signal.isFinished {
      let version = signal.version
      let isFinished = buffer.isFinished
      // The answers first: what their commits changed was offered before they were settled, and so
      // is among the changes that are taken after them.
      let answers = state.withLock { state in
        defer { state.answers = [] }
        return state.answers
      }
      let changes = view.takeAll(from: buffer)
      for (index, change) in changes.enumerated() {
        try await append(change, isLast: index == changes.count - 1, to: &lines)
      }
      for answer in answers { try await lines.append(answer) }
      try await lines.send()
      if !answers.isEmpty {
        state.withLock { $0.unanswered -= answers.count }
        signal.raise()
      } else if changes.isEmpty {
        if isFinished { return }
        await signal.wait(after: version)
        try Task.checkCancellation()
      }
    }
  }

  /// A change, in parts that each fit a line.
  private func append(_ change: Change, isLast: Bool, to lines: inout LineBatch) async throws {
    for part in try Self.parts(change.items.map { ($0.key, $0.new) }) {
      var response = ControlResponse(id: request.id, isLast: false)
      var told = change
      told.items = []
      if !part.isLast { told.superseded = [] }
      var control = try ControlChange(told)
      control.new = part.entries
      control.goesOn = part.isLast ? nil : true
      response.change = control
      response.hasMore = part.isLast && isLast ? nil : true
      try await lines.append(response)
    }
  }

  /// Entries in parts of about ``ControlLimits/partBytes``; at least one, which may be empty.
  private static func parts(
    _ values: [(key: String, value: PropertyListValue?)]
  ) throws(KithError) -> [(entries: [ControlEntry], isLast: Bool)] {
    var parts: [(entries: [ControlEntry], isLast: Bool)] = []
    var entries: [ControlEntry] = []
    var bytes = 0
    for (key, value) in values {
      if bytes > ControlLimits.partBytes {
        parts.append((entries, false))
        entries = []
        bytes = 0
      }
      let entry = try ControlEntry(key: key, value: value)
      bytes += key.utf8.count + (entry.value?.utf8.count ?? 0)
      entries.append(entry)
    }
    return parts + [(entries, true)]
  }
}

/// Lines that are sent together once they are enough.
private struct LineBatch {
  let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var lines = ByteBuffer()

  init(outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
    self.outbound = outbound
  }

  mutating func append(_ response: ControlResponse) async throws {
    var line = try ControlJSON.encode(response)
    lines.writeBuffer(&line)
    if lines.readableBytes > ControlLimits.partBytes { try await send() }
  }

  mutating func send() async throws {
    guard lines.readableBytes > 0 else { return }
    defer { lines = ByteBuffer() }
    try await outbound.write(lines)
  }
}
