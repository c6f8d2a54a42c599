// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

internal import CKith
internal import Dispatch
internal import Kith
internal import Synchronization

/// A `kith_task`: work that goes on beside the program, and tells of itself by events.
final class Work: Handled {
  static let eventLimit = 64
  /// How long a call waits for work to begin.
  private static let longestBeginningSeconds = 10.0

  private struct State {
    var events: [(value: PropertyListValue, isQuestion: Bool)] = []
    /// The continuations of the questions without an answer.
    var answers: [CheckedContinuation<Bool, Never>] = []
    /// Whether nobody will answer any more.
    var isUnattended = false
    var task: Task<Void, Never>?
    var outcome: Result<PropertyListValue, KithError>?
  }

  private let state = Mutex(State())
  private let descriptor: Descriptor
  private let ending = DispatchGroup()
  /// Signalled when it has begun what lasts, and when it is done.
  private let beginning = DispatchSemaphore(value: 0)

  /// Begins the work.
  init(
    _ body: @escaping @Sendable (Work) async throws -> PropertyListValue
  ) throws(KithError) {
    descriptor = try Descriptor()
    ending.enter()
    let task = Task {
      do {
        self.finish(.success(try await body(self)))
      } catch {
        self.finish(.failure(KithError(any: error)))
      }
    }
    state.withLock { $0.task = task }
  }

  func end() { cancel() }

  var number: CInt { descriptor.number }

  var isDone: Bool { state.withLock { $0.outcome != nil } }

  private func finish(_ outcome: Result<PropertyListValue, KithError>) {
    state.withLock { state in
      state.outcome = outcome
      state.task = nil
      descriptor.set(true)
    }
    ending.leave()
    beginning.signal()
  }

  // MARK: For the work

  /// It has begun what lasts.
  func noteBegun() { beginning.signal() }

  /// Adds an event. If it `replaces`, those that wait go.
  func tell(_ event: PropertyListValue, replaces: Bool = false) {
    state.withLock { state in
      if replaces { state.events.removeAll { !$0.isQuestion } }
      if state.events.count >= Self.eventLimit,
        let oldest = state.events.firstIndex(where: { !$0.isQuestion })
      {
        state.events.remove(at: oldest)
      }
      state.events.append((event, false))
      descriptor.set(true)
    }
  }

  /// Adds a question, and waits for the program's answer.
  func ask(_ question: PropertyListValue) async -> Bool {
    await withCheckedContinuation { answer in
      let isUnattended = state.withLock { state in
        if state.isUnattended { return true }
        state.events.append((question, true))
        state.answers.append(answer)
        descriptor.set(true)
        return false
      }
      if isUnattended { answer.resume(returning: false) }
    }
  }

  /// Blocks until the program answers.
  func askBlocking(_ question: PropertyListValue) throws(KithError) -> Bool {
    try CallingThread.run { await self.ask(question) }
  }

  // MARK: For the program

  /// The next event; nil if none comes in time.
  func next(within milliseconds: CInt) -> PropertyListValue? {
    descriptor.take(within: milliseconds) {
      state.withLock { state in
        descriptor.set(false)
        let event = state.events.isEmpty ? nil : state.events.removeFirst()
        if !state.events.isEmpty || state.outcome != nil { descriptor.set(true) }
        return event?.value
      }
    } unless: {
      isDone
    }
  }

  /// Answers the oldest question; false if there is none.
  func answer(_ yes: Bool) -> Bool {
    let answer = state.withLock { $0.answers.isEmpty ? nil : $0.answers.removeFirst() }
    answer?.resume(returning: yes)
    return answer != nil
  }

  private func leaveUnattended() {
    let answers = state.withLock { state in
      state.isUnattended = true
      defer { state.answers = [] }
      return state.answers
    }
    for answer in answers { answer.resume(returning: false) }
  }

  func cancel() {
    state.withLock { $0.task }?.cancel()
    leaveUnattended()
  }

  /// Blocks until it has begun what lasts, or for the longest time; throws if it has failed by then.
  func waitUntilBegun() throws(KithError) {
    _ = beginning.wait(timeout: .now() + Self.longestBeginningSeconds)
    if isDone { _ = try result() }
  }

  /// Blocks until the work is done.
  func result() throws(KithError) -> PropertyListValue {
    leaveUnattended()
    ending.wait()
    guard let outcome = state.withLock({ $0.outcome }) else {
      throw KithError(.cancelled, "The task has ended without a result.")
    }
    return try outcome.get()
  }
}

private func work(_ task: Pointer) -> Work? { Registry.shared.object(task, Work.self) }

@c @implementation
public func kith_task_fd(_ task: Pointer) -> CInt { work(task)?.number ?? -1 }

@c @implementation
public func kith_task_next(_ task: Pointer, _ milliseconds: CInt) -> Pointer {
  work(task)?.next(within: milliseconds)?.handle
}

@c @implementation
public func kith_task_answer(_ task: Pointer, _ yes: Bool, _ error: ErrorOut) -> Bool {
  succeeds(error) {
    guard try Argument.object(task, "task", Work.self).answer(yes) else {
      throw KithError.invalid("No question of the task waits for an answer.")
    }
  }
}

@c @implementation
public func kith_task_cancel(_ task: Pointer) { work(task)?.cancel() }

@c @implementation
public func kith_task_is_done(_ task: Pointer) -> Bool { work(task)?.isDone ?? false }

@c @implementation
public func kith_task_finish(_ task: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { try Argument.object(task, "task", Work.self).result() }
}
