#if !canImport(Darwin)
  public import Foundation

  extension NotificationCenter {
    /// The notifications of a name, from the moment in which somebody begins to iterate.
    ///
    /// ```swift
    /// for await notification in NotificationCenter.default.notifications(named: name) { … }
    /// ```
    ///
    /// - Parameters:
    ///   - name: Their name.
    ///   - object: Only those of this object; nil: all.
    /// - Returns: A sequence without end; cancelling the task ends it.
    public func notifications(
      named name: NSNotification.Name, object: AnyObject? = nil
    ) -> Notifications {
      Notifications(center: self, name: name, object: object)
    }

    // Unchecked: the object is compared and nothing else.
    /// Notifications as an asynchronous sequence; see `notifications(named:object:)`.
    public struct Notifications: AsyncSequence, @unchecked Sendable {
      /// The most notifications that wait to be taken; beyond that the oldest are dropped.
      public static let bufferLimit = 1_024

      let center: NotificationCenter
      let name: NSNotification.Name
      let object: AnyObject?

      /// Takes the notifications of one sequence.
      public struct AsyncIterator: AsyncIteratorProtocol {
        private let observation: Observation
        private var stream: AsyncStream<Notification>.Iterator

        init(_ notifications: Notifications) {
          let (stream, continuation) = AsyncStream.makeStream(
            of: Notification.self, bufferingPolicy: .bufferingNewest(bufferLimit))
          observation = Observation(notifications, continuation)
          self.stream = stream.makeAsyncIterator()
        }

        /// The next notification; nil where the task was cancelled.
        public mutating func next() async -> Notification? {
          await next(isolation: nil)
        }

        /// The next notification; nil where the task was cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Notification? {
          await stream.next(isolation: actor)
        }
      }

      /// An iterator, which hears of all that is posted from now on.
      public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
    }
  }

  /// Observes as long as an iterator holds it.
  private final class Observation {
    private let center: NotificationCenter
    private let token: any NSObjectProtocol

    init(
      _ notifications: NotificationCenter.Notifications,
      _ continuation: AsyncStream<Notification>.Continuation
    ) {
      center = notifications.center
      token = center.addObserver(
        forName: notifications.name, object: notifications.object, queue: nil
      ) { notification in
        // Unchecked: all observers share a notification, as on Apple's systems.
        nonisolated(unsafe) let notification = notification
        continuation.yield(notification)
      }
    }

    deinit { center.removeObserver(token as Any) }
  }
#endif
