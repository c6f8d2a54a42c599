// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

internal import CKith
internal import KithCore
internal import Synchronization

/// A handle, or NULL.
public typealias Pointer = OpaquePointer?
/// UTF-8 that ends with a zero byte, or NULL.
public typealias Text = UnsafePointer<CChar>?
/// Texts that end with NULL, or NULL.
public typealias Texts = UnsafePointer<Text>?
/// A pointer to store a length at, or NULL.
public typealias LengthOut = UnsafeMutablePointer<Int>?
/// A pointer to store an error at, or NULL.
public typealias ErrorOut = UnsafeMutablePointer<Pointer>?

/// The object behind a handle of the C interface.
protocol Handled: AnyObject, Sendable {
  /// Called when the program has freed the handle, outside of all locks.
  func end()
}

extension Handled {
  func end() {}
}

/// A number that a C program holds in place of a pointer to an object. It is looked up at each call, so
/// that one that was freed, or never was one, is found out.
struct Handle: Sendable, Equatable {
  /// The generation of a slot, above the index of the slot.
  let number: UInt

  fileprivate static let indexBits: UInt = 24

  fileprivate init(index: Int, generation: UInt) {
    number = generation << Self.indexBits | UInt(index)
  }

  init?(_ pointer: OpaquePointer?) {
    guard let pointer else { return nil }
    number = UInt(bitPattern: pointer)
  }

  fileprivate var index: Int { Int(number & (1 << Self.indexBits - 1)) }

  var pointer: OpaquePointer? { OpaquePointer(bitPattern: number) }
}

/// All handles of the process.
final class Registry: Sendable {
  static let shared = Registry()

  private struct Slot {
    var object: (any Handled)?
    var isBorrowed = false
    /// Counts the handles of the slot, so that no number comes again.
    var generation: UInt = 0
  }

  private struct State {
    var slots: [Slot] = []
    var free: [Int] = []

    func object(of handle: Handle) -> (any Handled)? {
      let index = handle.index
      guard index < slots.count,
        handle == Handle(index: index, generation: slots[index].generation)
      else { return nil }
      return slots[index].object
    }
  }

  private let state = Mutex(State())

  /// Nil if there are more handles than numbers, which is 16 million. A borrowed handle is not the
  /// program's to free.
  func add(_ object: any Handled, isBorrowed: Bool = false) -> Handle? {
    state.withLock { state in
      if state.free.isEmpty {
        guard state.slots.count < 1 << Handle.indexBits else { return nil }
        state.slots.append(Slot())
        state.free.append(state.slots.count - 1)
      }
      let index = state.free.removeLast()
      state.slots[index].generation += 1
      state.slots[index].object = object
      state.slots[index].isBorrowed = isBorrowed
      return Handle(index: index, generation: state.slots[index].generation)
    }
  }

  /// Nil for a handle that is freed, or of another kind.
  func object<Object: Handled>(_ pointer: OpaquePointer?, _ type: Object.Type) -> Object? {
    guard let handle = Handle(pointer) else { return nil }
    return state.withLock { $0.object(of: handle) } as? Object
  }

  /// Ends a handle, and returns its object; nil if it is not one, or borrowed and `isOwner` is false.
  func remove(_ handle: Handle, isOwner: Bool = false) -> (any Handled)? {
    let object = state.withLock { state -> (any Handled)? in
      guard let object = state.object(of: handle),
        isOwner || !state.slots[handle.index].isBorrowed
      else { return nil }
      state.slots[handle.index].object = nil
      state.free.append(handle.index)
      return object
    }
    // Kept until here: under the lock, its end would lock again, to remove what was borrowed of it.
    return withExtendedLifetime(object) { object }
  }
}

extension Handled {
  /// A new handle for the program, which frees it.
  var handle: OpaquePointer? { Registry.shared.add(self)?.pointer }
}

/// The handles and texts that an object lends to the program, by index. They end with the object.
struct Lent: ~Copyable {
  private var handles: [Int: Handle] = [:]
  private var texts: [Int: CText] = [:]

  mutating func handle(_ index: Int, of make: @autoclosure () -> any Handled) -> Handle? {
    if let known = handles[index] { return known }
    handles[index] = Registry.shared.add(make(), isBorrowed: true)
    return handles[index]
  }

  mutating func text(_ index: Int, of make: @autoclosure () -> CText) -> CText {
    if let known = texts[index] { return known }
    let made = make()
    texts[index] = made
    return made
  }

  mutating func endAll() {
    Self.end(handles)
    (handles, texts) = ([:], [:])
  }

  private static func end(_ handles: [Int: Handle]) {
    for handle in handles.values { _ = Registry.shared.remove(handle, isOwner: true) }
  }

  deinit { Self.end(handles) }
}

/// Text or bytes that a C program reads in place: they end with a zero byte, and with the object that
/// keeps them.
final class CText: Sendable {
  /// Never written after `init`, and freed after the last use.
  nonisolated(unsafe) let bytes: UnsafeMutablePointer<UInt8>
  let count: Int

  init(_ content: some Collection<UInt8>) {
    count = content.count
    bytes = .allocate(capacity: count + 1)
    _ = UnsafeMutableBufferPointer(start: bytes, count: count).initialize(from: content)
    bytes[count] = 0
  }

  convenience init(_ text: String) { self.init(text.utf8) }

  deinit { bytes.deallocate() }

  var text: UnsafePointer<CChar> { UnsafeRawPointer(bytes).assumingMemoryBound(to: CChar.self) }

  /// Returns the text, and stores its length if that is asked for.
  func text(_ length: UnsafeMutablePointer<Int>?) -> UnsafePointer<CChar> {
    length?.pointee = count
    return text
  }
}

// MARK: - Interface

private let version = CText(Software.version)

@c @implementation
public func kith_version() -> Text { version.text }

@c @implementation
public func kith_free(_ handle: UnsafeMutableRawPointer?) -> Bool {
  guard let handle = Handle(handle.map { OpaquePointer($0) }),
    let object = Registry.shared.remove(handle)
  else { return false }
  object.end()
  return true
}
