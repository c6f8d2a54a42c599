/// A value now, and after each change; a slow reader gets only the latest.
struct Updates<Element: Equatable & Sendable>: AsyncSequence, Sendable {
  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let after: @Sendable (_ last: Element?) async -> Element?
    fileprivate var last: Element?

    mutating func next() async -> Element? {
      last = await after(last)
      return last
    }
  }

  /// Waits until the value differs from the last one; nil at the end.
  let after: @Sendable (_ last: Element?) async -> Element?

  func makeAsyncIterator() -> AsyncIterator { AsyncIterator(after: after) }
}
