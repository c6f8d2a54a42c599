#if !canImport(Darwin)
  internal import Foundation
  internal import Synchronization

  /// Tells the calls under way that their observer was removed.
  final class Removal: Sendable {
    private let flag = Atomic(false)

    var isDone: Bool { flag.load(ordering: .acquiring) }

    func finish() { flag.store(true, ordering: .releasing) }
  }

  /// The observers that were added with a selector, held weakly.
  final class SelectorObservers: Sendable {
    static let shared = SelectorObservers()

    // Unchecked: observers document how they are guarded, as on Apple's systems.
    private struct Weak: @unchecked Sendable {
      weak var object: AnyObject?
    }

    // Unchecked: a center has a lock of its own, and the token only goes back to it.
    private struct Registration: @unchecked Sendable {
      var observer: Weak
      var center: NotificationCenter
      var name: NSNotification.Name?
      var object: ObjectIdentifier?
      var token: any NSObjectProtocol
      var removal: Removal
    }

    private let registrations = Mutex<[ObjectIdentifier: [Registration]]>([:])

    func count(in center: NotificationCenter) -> Int {
      registrations.withLock { $0.values.reduce(0) { $0 + $1.count { $0.center === center } } }
    }

    func add(
      _ observer: AnyObject, _ selector: Selector, _ center: NotificationCenter,
      _ name: NSNotification.Name?, _ object: Any?
    ) {
      let id = ObjectIdentifier(observer)
      let (weak, removal) = (Weak(object: observer), Removal())
      let token = center.addObserver(forName: name, object: object, queue: nil) { notification in
        guard let observer = weak.object else { return self.remove() }
        selector.call(observer, notification, removal)
      }
      let registration = Registration(
        observer: weak, center: center, name: name,
        object: object.map { ObjectIdentifier($0 as AnyObject) }, token: token, removal: removal)
      registrations.withLock { $0[id, default: []].append(registration) }
    }

    /// Nil stands for all names, or all objects.
    func remove(
      _ observer: AnyObject, _ center: NotificationCenter, _ name: NSNotification.Name?,
      _ object: Any?
    ) {
      // During an observer's `deinit` weak references to it are nil already, so its address
      // identifies it. Registrations of an earlier object at this address are dead.
      let object = object.map { ObjectIdentifier($0 as AnyObject) }
      remove(ObjectIdentifier(observer)) { registration in
        registration.center === center && (name == nil || registration.name == name)
          && (object == nil || registration.object == object)
      }
    }

    /// Removes also the registrations of dead observers.
    private func remove(
      _ id: ObjectIdentifier? = nil, where isRemoved: (Registration) -> Bool = { _ in false }
    ) {
      // Held until after the lock: an observer may remove itself in its `deinit`.
      var alive: [AnyObject] = []
      let removed = registrations.withLock { registrations in
        var removed: [Registration] = []
        for id in id.map({ [$0] }) ?? Array(registrations.keys) {
          var rest: [Registration] = []
          for registration in registrations[id] ?? [] {
            let observer = registration.observer.object
            if let observer { alive.append(observer) }
            if observer == nil || isRemoved(registration) {
              registration.removal.finish()
              removed.append(registration)
            } else {
              rest.append(registration)
            }
          }
          registrations[id] = rest.isEmpty ? nil : rest
        }
        return removed
      }
      withExtendedLifetime(alive) {}
      // `as Any` selects Foundation's own method, which knows only tokens.
      for each in removed { each.center.removeObserver(each.token as Any) }
    }
  }
#endif
