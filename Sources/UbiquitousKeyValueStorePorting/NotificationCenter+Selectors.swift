#if !canImport(Darwin)
  public import Foundation

  extension NotificationCenter {
    /// Calls a method of an observer for each notification, on the thread that posts it.
    ///
    /// The observer is not kept alive, and hears of nothing more once it is gone, also where it was
    /// not removed.
    ///
    /// - Parameters:
    ///   - observer: The observer, of the selector's type.
    ///   - selector: Its method; see ``Selector``.
    ///   - name: Only notifications of this name; nil: all.
    ///   - object: Only notifications of this object; nil: all.
    public func addObserver(
      _ observer: AnyObject, selector: Selector, name: NSNotification.Name?, object: Any?
    ) {
      SelectorObservers.shared.add(observer, selector, self, name, object)
    }

    /// Removes an observer that was added with a selector, or with a block: its token.
    ///
    /// - Parameter observer: The observer, also in its own `deinit`.
    public func removeObserver(_ observer: AnyObject) {
      removeObserver(observer, name: nil, object: nil)
    }

    /// Removes an observer that was added with a selector, or with a block: its token.
    ///
    /// - Parameters:
    ///   - observer: The observer, also in its own `deinit`.
    ///   - name: Only for notifications of this name; nil: all.
    ///   - object: Only for notifications of this object; nil: all.
    public func removeObserver(
      _ observer: AnyObject, name: NSNotification.Name?, object: Any?
    ) {
      SelectorObservers.shared.remove(observer, self, name, object)
      // `as Any`: Foundation's own, which knows tokens only.
      removeObserver(observer as Any, name: name, object: object)
    }
  }
#endif
