#if !canImport(Darwin)
  internal import Synchronization

  /// The objects on the same data. Each is told of changes as long as the program holds it.
  final class LiveObjects: Sendable {
    private struct Weak {
      weak var object: NSUbiquitousKeyValueStore?
    }

    private let objects = Mutex<[Weak]>([])

    /// The living objects, in the order in which they were made.
    ///
    /// - Complexity: O(*n*).
    var all: [NSUbiquitousKeyValueStore] { objects.withLock { $0.compactMap(\.object) } }

    /// The number of registered objects, including dead ones.
    var count: Int { objects.withLock { $0.count } }

    /// Registers an object, and drops the dead ones.
    ///
    /// - Complexity: O(*n*).
    func add(_ object: NSUbiquitousKeyValueStore) {
      objects.withLock { objects in
        objects.removeAll { $0.object == nil }
        objects.append(Weak(object: object))
      }
    }
  }
#endif
