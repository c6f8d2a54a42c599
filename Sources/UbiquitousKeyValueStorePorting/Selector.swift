#if !canImport(Darwin)
  public import Foundation

  /// A method of an observer, in place of the result of `#selector` on Apple's systems.
  ///
  /// ```swift
  /// Selector(Settings.storeDidChange(_:))  // there: #selector(Settings.storeDidChange(_:))
  /// ```
  /// The name differs because `#selector` needs Objective-C. The method needs no `@objc` and may be
  /// private. It takes the notification or nothing, and returns nothing. In a program built in
  /// Swift 6 mode, a main-actor method is called on the main queue, unless its observer was removed by
  /// then.
  public struct Selector: Sendable {
    // Unchecked: a method that is bound to no object has no state.
    nonisolated(unsafe) private let method: (AnyObject, Notification, Removal) -> Void

    private init<Observer: AnyObject>(
      calling method: @escaping (Observer, Notification, Removal) -> Void
    ) {
      self.method = { object, notification, removal in
        guard let observer = object as? Observer else { return }
        method(observer, notification, removal)
      }
    }

    private static let mark = {
      let key = DispatchSpecificKey<Void>()
      DispatchQueue.main.setSpecific(key: key, value: ())
      return key
    }()

    /// Whether the current queue is the main queue. After `dispatchMain()`, and in an asynchronous
    /// `main`, threads other than the main one serve it.
    private static var isOnMain: Bool { DispatchQueue.getSpecific(key: mark) != nil }

    private init<Observer: AnyObject>(
      onMain method: @escaping @MainActor (Observer, Notification) -> Void
    ) {
      self.init { (observer: Observer, notification, removal) in
        // Unchecked: all observers share a notification, as on Apple's systems.
        nonisolated(unsafe) let (observer, notification) = (observer, notification)
        if Self.isOnMain {
          MainActor.assumeIsolated { method(observer, notification) }
        } else {
          // Asynchronous, because the main thread may be waiting for this one. Until then the observer
          // may be removed.
          DispatchQueue.main.async {
            if !removal.isDone { method(observer, notification) }
          }
        }
      }
    }

    /// Makes a selector of a method that takes the notification.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> (Notification) -> Void) {
      self.init { (observer: Observer, notification, _) in method(observer)(notification) }
    }

    /// Makes a selector of a method that takes an `NSNotification`.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> (NSNotification) -> Void) {
      self.init { (observer: Observer, notification, _) in
        method(observer)(notification as NSNotification)
      }
    }

    /// Makes a selector of a method without parameters.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> () -> Void) {
      self.init { (observer: Observer, _, _) in method(observer)() }
    }

    // Unchecked in the next three: a method that is bound to no object has no state.

    /// Makes a selector of a main-actor method that takes the notification.
    public init<Observer: AnyObject>(
      _ method: @escaping (Observer) -> @MainActor (Notification) -> Void
    ) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, notification) in method(observer)(notification) })
    }

    /// Makes a selector of a main-actor method that takes an `NSNotification`.
    public init<Observer: AnyObject>(
      _ method: @escaping (Observer) -> @MainActor (NSNotification) -> Void
    ) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, notification) in
        method(observer)(notification as NSNotification)
      })
    }

    /// Makes a selector of a main-actor method without parameters.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> @MainActor () -> Void) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, _) in method(observer)() })
    }

    /// Unavailable: a method bound to an object is not supported.
    @available(
      *, unavailable, message: "Name the type, as in Selector(Settings.storeDidChange(_:))."
    )
    public init<Parameter>(_ method: (Parameter) -> Void) { fatalError() }

    /// Unavailable: a method bound to an object is not supported.
    @available(
      *, unavailable, message: "Name the type, as in Selector(Settings.storeDidChange)."
    )
    public init(_ method: () -> Void) { fatalError() }

    /// Ignores an observer of another type.
    func call(_ observer: AnyObject, _ notification: Notification, _ removal: Removal) {
      method(observer, notification, removal)
    }
  }
#endif
