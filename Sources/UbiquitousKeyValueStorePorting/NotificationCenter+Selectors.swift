#if !canImport(Darwin)
  public import Foundation

  extension NotificationCenter {
    /// Calls a method of an observer for each notification, on the thread that posts it.
    ///
    /// The observer is held weakly, and need not be removed.
    ///
    /// - Parameters:
    ///   - observer: The observer, of the selector's type.
    ///   - selector: The observer's method; see ``Selector``.
    ///   - name: The name of the notifications; nil: any.
    ///   - object: The object of the notifications; nil: any.
    public func addObserver(
      _ observer: AnyObject, selector: Selector, name: NSNotification.Name?, object: Any?
    ) {
      SelectorObservers.shared.add(observer, selector, self, name, object)
    }

    /// Removes an observer that was added with a selector, or the token of one added with a block.
    ///
    /// - Parameter observer: The observer. It may call this in its own `deinit`.
    public func removeObserver(_ observer: AnyObject) {
      removeObserver(observer, name: nil, object: nil)
    }

    /// Removes an observer as ``removeObserver(_:)`` does, of some notifications only.
    ///
    /// - Parameters:
    ///   - observer: The observer. It may call this in its own `deinit`.
    ///   - name: The name of the notifications; nil: any.
    ///   - object: The object of the notifications; nil: any.
    public func removeObserver(
      _ observer: AnyObject, name: NSNotification.Name?, object: Any?
    ) {
      SelectorObservers.shared.remove(observer, self, name, object)
      // `as Any` selects Foundation's own method, which knows only tokens.
      removeObserver(observer as Any, name: name, object: object)
    }
  }
#endif
