#if !canImport(Darwin)
  internal import Synchronization

  /// The objects on the same data, held weakly.
  final class LiveObjects: Sendable {
    private struct Weak {
      weak var object: NSUbiquitousKeyValueStore?
    }

    private let objects = Mutex<[Weak]>([])

    /// In the order in which they were made.
    ///
    /// - Complexity: O(*n*).
    var all: [NSUbiquitousKeyValueStore] { objects.withLock { $0.compactMap(\.object) } }

    /// Includes dead objects.
    var count: Int { objects.withLock { $0.count } }

    /// Also drops dead objects.
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
