#if !canImport(Darwin)
  public import Foundation

  /// A method of an observer, in the place of what `#selector` gives on Apple's systems.
  ///
  /// ```swift
  /// Selector(Settings.storeDidChange(_:))  // there: #selector(Settings.storeDidChange(_:))
  /// ```
  /// `#selector` needs Objective-C, so this is another word; the method needs no `@objc` and may be
  /// private. It takes the notification or nothing, and returns nothing. A method of the main actor,
  /// where the program is built in Swift 6 mode, is called on the main queue.
  public struct Selector: Sendable {
    // Unchecked: it holds a method that is bound to no object, and so no state.
    nonisolated(unsafe) private let method: (AnyObject, Notification) -> Void

    private init<Observer: AnyObject>(
      calling method: @escaping (Observer, Notification) -> Void
    ) {
      self.method = { object, notification in
        guard let observer = object as? Observer else { return }
        method(observer, notification)
      }
    }

    private static let mark = {
      let key = DispatchSpecificKey<Void>()
      DispatchQueue.main.setSpecific(key: key, value: ())
      return key
    }()

    /// Whether this is the main queue. After `dispatchMain()`, and in an asynchronous `main`, no main
    /// thread is left, and others serve it.
    private static var isOnMain: Bool { DispatchQueue.getSpecific(key: mark) != nil }

    private init<Observer: AnyObject>(
      onMain method: @escaping @MainActor (Observer, Notification) -> Void
    ) {
      self.init { (observer: Observer, notification) in
        // Unchecked: all observers share a notification, as on Apple's systems.
        nonisolated(unsafe) let (observer, notification) = (observer, notification)
        if Self.isOnMain {
          MainActor.assumeIsolated { method(observer, notification) }
        } else {
          // Without waiting for it: the main thread may wait for this one.
          DispatchQueue.main.async { method(observer, notification) }
        }
      }
    }

    /// A method that takes the notification.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> (Notification) -> Void) {
      self.init { (observer: Observer, notification) in method(observer)(notification) }
    }

    /// A method that takes the notification as an object.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> (NSNotification) -> Void) {
      self.init { (observer: Observer, notification) in
        method(observer)(notification as NSNotification)
      }
    }

    /// A method that takes nothing.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> () -> Void) {
      self.init { (observer: Observer, _) in method(observer)() }
    }

    // Unchecked in the next three, as above: a method that is bound to no object has no state.

    /// A method of the main actor that takes the notification.
    public init<Observer: AnyObject>(
      _ method: @escaping (Observer) -> @MainActor (Notification) -> Void
    ) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, notification) in method(observer)(notification) })
    }

    /// A method of the main actor that takes the notification as an object.
    public init<Observer: AnyObject>(
      _ method: @escaping (Observer) -> @MainActor (NSNotification) -> Void
    ) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, notification) in
        method(observer)(notification as NSNotification)
      })
    }

    /// A method of the main actor that takes nothing.
    public init<Observer: AnyObject>(_ method: @escaping (Observer) -> @MainActor () -> Void) {
      nonisolated(unsafe) let method = method
      self.init(onMain: { (observer: Observer, _) in method(observer)() })
    }

    /// A method that is bound to an object, which `Selector` does not take.
    @available(
      *, unavailable, message: "Name the type, as in Selector(Settings.storeDidChange(_:))."
    )
    public init(_ method: (Notification) -> Void) { fatalError() }

    /// A method that is bound to an object, which `Selector` does not take.
    @available(
      *, unavailable, message: "Name the type, as in Selector(Settings.storeDidChange(_:))."
    )
    public init(_ method: (NSNotification) -> Void) { fatalError() }

    /// A method that is bound to an object, which `Selector` does not take.
    @available(
      *, unavailable, message: "Name the type, as in Selector(Settings.storeDidChange)."
    )
    public init(_ method: () -> Void) { fatalError() }

    /// Calls the method of an observer, if that is of the method's type.
    func call(_ observer: AnyObject, _ notification: Notification) {
      method(observer, notification)
    }
  }
#endif
