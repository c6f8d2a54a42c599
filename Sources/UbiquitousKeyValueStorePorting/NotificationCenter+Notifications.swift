#if !canImport(Darwin)
  public import Foundation

  extension NotificationCenter {
    /// Returns the notifications of a name, posted after iteration begins.
    ///
    /// ```swift
    /// for await notification in NotificationCenter.default.notifications(named: name) { … }
    /// ```
    ///
    /// - Parameters:
    ///   - name: The name of the notifications.
    ///   - object: The object of the notifications; nil: any.
    /// - Returns: An endless sequence; cancelling the task ends it.
    public func notifications(
      named name: NSNotification.Name, object: AnyObject? = nil
    ) -> Notifications {
      Notifications(center: self, name: name, object: object)
    }

    // Unchecked: the object is only compared.
    /// Notifications as an asynchronous sequence; see `notifications(named:object:)`.
    public struct Notifications: AsyncSequence, @unchecked Sendable {
      /// The maximum number of waiting notifications; beyond it the oldest are dropped.
      public static let bufferLimit = 1_024

      let center: NotificationCenter
      let name: NSNotification.Name
      let object: AnyObject?

      /// The iterator of ``Notifications``.
      public struct AsyncIterator: AsyncIteratorProtocol {
        private let observation: Observation
        private var stream: AsyncStream<Notification>.Iterator

        init(_ notifications: Notifications) {
          let (stream, continuation) = AsyncStream.makeStream(
            of: Notification.self, bufferingPolicy: .bufferingNewest(bufferLimit))
          observation = Observation(notifications, continuation)
          self.stream = stream.makeAsyncIterator()
        }

        /// Returns the next notification; nil if the task was cancelled.
        public mutating func next() async -> Notification? {
          await next(isolation: nil)
        }

        /// Returns the next notification; nil if the task was cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Notification? {
          await stream.next(isolation: actor)
        }
      }

      /// Returns an iterator over the notifications posted from now on.
      public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
    }
  }

  /// Observes until it is released, with the iterator that holds it.
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
