#if !canImport(Darwin)
  internal import Synchronization

  /// The objects that stand on the same data, each of which is told of changes as long as somebody
  /// holds it.
  final class LiveObjects: Sendable {
    private struct Weak {
      weak var object: NSUbiquitousKeyValueStore?
    }

    private let objects = Mutex<[Weak]>([])

    /// Those alive, in the order in which they were made.
    ///
    /// - Complexity: O(*n*).
    var all: [NSUbiquitousKeyValueStore] { objects.withLock { $0.compactMap(\.object) } }

    /// How many are remembered, dead ones too.
    var count: Int { objects.withLock { $0.count } }

    /// Remembers an object, and forgets the dead.
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
