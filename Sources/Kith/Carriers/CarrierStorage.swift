/// Storage that people have, which holds an account's sealed objects: a folder, a WebDAV collection,
/// a bucket.
///
/// It has four operations on objects of one directory, the *place*. A conforming type knows where its
/// storage is and how to sign in; it knows nothing of Kith. It may be slow, late, partial or wrong:
/// every promise holds in spite of it. `KithCarriersTesting` has a suite that a conforming type runs.
///
/// Names of objects, and the parts of a place's name between slashes, are of ASCII letters, digits, `-`
/// and `_`. Others fail with ``CarrierFailure/Code/unexpected``, and listings leave them out.
///
/// An operation that takes no byte for 30 s fails with ``CarrierFailure/Code/unreachable``, and one
/// whose task is cancelled ends soon.
public protocol CarrierStorage: Sendable {
  /// Makes the place, with the directories above it. Called once, when a person adds the carrier:
  /// later operations throw *not there* if the place is gone, and never return an empty list.
  func makePlace(_ place: String) async throws(CarrierFailure)

  /// All objects of a place, in any order. A listing that breaks off throws.
  ///
  /// More objects than the limit fail with ``CarrierFailure/Code/tooMuch``.
  func list(_ place: String, limit: Int) async throws(CarrierFailure) -> [CarrierObject]

  /// An object's bytes; nil if there is none of that name.
  ///
  /// More bytes than the limit fail with ``CarrierFailure/Code/tooMuch``.
  func get(_ name: String, from place: String, limit: Int) async throws(CarrierFailure)
    -> [UInt8]?

  /// Puts an object whose name was never used before. It is listed whole or not at all, and is durable
  /// when this returns, as far as the storage can say so.
  func put(_ bytes: [UInt8], as name: String, in place: String) async throws(CarrierFailure)

  /// Deletes an object. It is no error if there is none of that name.
  func delete(_ name: String, from place: String) async throws(CarrierFailure)

  /// Yields when something may have changed in a place, this device's own puts included. It ends when
  /// the place cannot be watched any more. Nil if the storage cannot tell.
  func changes(in place: String) -> AsyncStream<Void>?

  /// The least time between two listings that nothing asked for.
  var shortestPause: Duration { get }

  /// Warnings for a person about settings of the storage that keep deleted objects: versioning, bins.
  /// Throws if it cannot be asked.
  func warnings(for place: String) async throws(CarrierFailure) -> [String]
}

extension CarrierStorage {
  /// Nil: the storage cannot tell.
  public func changes(in place: String) -> AsyncStream<Void>? { nil }
  /// Five seconds.
  public var shortestPause: Duration { .seconds(5) }
  /// None.
  public func warnings(for place: String) async throws(CarrierFailure) -> [String] { [] }
}

/// An object of a listing.
public struct CarrierObject: Hashable, Sendable {
  /// The object's name, without its place.
  public var name: String
  /// The object's size in bytes.
  public var bytes: Int

  /// An object of a name and a size in bytes.
  public init(name: String, bytes: Int) {
    self.name = name
    self.bytes = bytes
  }
}

/// Why an operation on a carrier failed, and what to do. It holds no secret.
public struct CarrierFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// A struct, so that a new code breaks no program.
  public struct Code: Hashable, Sendable {
    private let name: String

    /// The place, the folder or the bucket is not there.
    public static let notThere = Code(name: "notThere")
    /// The credentials are wrong, or do not suffice.
    public static let denied = Code(name: "denied")
    /// The storage is full.
    public static let full = Code(name: "full")
    /// The storage asks to wait (429, 503).
    public static let busy = Code(name: "busy")
    /// No answer, or none in time.
    public static let unreachable = Code(name: "unreachable")
    /// The server's certificate does not prove that it is the one asked for, or it sends elsewhere.
    public static let untrusted = Code(name: "untrusted")
    /// More objects or bytes than the caller takes.
    public static let tooMuch = Code(name: "tooMuch")
    /// An answer that the protocol does not know.
    public static let unexpected = Code(name: "unexpected")
  }

  /// The kind of failure, for programs.
  public var code: Code
  /// One sentence that says what happened and what to do.
  public var message: String
  /// How long the storage asks to wait (`Retry-After`).
  public var retryAfter: Duration?

  /// A failure with its message, and the wait if the storage asked for one.
  public init(_ code: Code, _ message: String, retryAfter: Duration? = nil) {
    self.code = code
    self.message = message
    self.retryAfter = retryAfter
  }

  /// The message.
  public var description: String { message }
}
