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
      static let bufferLimit = 1_024

      let center: NotificationCenter
      let name: NSNotification.Name
      let object: AnyObject?

      /// Returns an iterator over the notifications posted from now on.
      public func makeAsyncIterator() -> AsyncStream<Notification>.Iterator {
        let (stream, continuation) = AsyncStream.makeStream(
          of: Notification.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
        // Unchecked: the token is only returned to the center.
        nonisolated(unsafe) let token = center.addObserver(
          forName: name, object: object, queue: nil
        ) { notification in
          // Unchecked: all observers share a notification, as on Apple's systems.
          nonisolated(unsafe) let notification = notification
          continuation.yield(notification)
        }
        // Called also when the iterator is released.
        continuation.onTermination = { [center] _ in center.removeObserver(token as Any) }
        return stream.makeAsyncIterator()
      }
    }
  }
#endif
