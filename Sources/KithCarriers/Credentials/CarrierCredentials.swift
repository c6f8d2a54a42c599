import Glibc
package import Kith
import KithCrypto

/// The secrets that sign in to a carrier. They never show in descriptions, failures or addresses.
package enum CarrierCredentials: Sendable, CustomStringConvertible, CustomReflectable {
  /// A folder, or a storage that is open to all.
  case none
  /// For WebDAV; sent as the server asks, digest (RFC 7616) or basic (RFC 7617).
  case password(user: String, SecretText)
  /// For WebDAV: RFC 6750.
  case bearer(SecretText)
  /// An access key's identifier and its secret.
  case s3(accessKey: String, SecretText)

  /// Parses the text of a file with credentials.
  ///
  /// | kind | lines |
  /// | --- | --- |
  /// | webdav | the user, the password; or one line, a token |
  /// | s3 | the access key, the secret key |
  /// | folder | none |
  ///
  /// Empty text is ``none``. A line ends with LF or CR LF. The caller overwrites `text`.
  ///
  /// - Throws: ``CarrierFailure/Code/denied``, with the form that is expected.
  package init(
    parsing text: [UInt8], for kind: CarrierAddress.Kind
  ) throws(CarrierFailure) {
    guard text.count <= CarrierLimits.credentialBytes else {
      throw CarrierFailure(
        .denied, "A file with credentials has at most \(CarrierLimits.credentialBytes) bytes.")
    }
    var lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
    if lines.last?.isEmpty == true { lines.removeLast() }
    guard lines.allSatisfy({ line in !line.contains { $0 < 0x20 || $0 == 0x7F } }) else {
      throw CarrierFailure(.denied, "Credentials have no control characters.")
    }
    switch (kind, lines.count) {
    case (_, 0): self = .none
    case (.webdav, 1): self = .bearer(SecretText(lines[0]))
    case (.webdav, 2): self = .password(user: try Self.name(lines[0]), SecretText(lines[1]))
    case (.s3, 2): self = .s3(accessKey: try Self.name(lines[0]), SecretText(lines[1]))
    case (.folder, _): throw CarrierFailure(.denied, "A folder needs no credentials.")
    case (.webdav, _):
      throw CarrierFailure(
        .denied,
        "WebDAV credentials are a line with the user and one with the password, or one token.")
    case (.s3, _):
      throw CarrierFailure(
        .denied, "S3 credentials are a line with the access key and one with the secret key.")
    }
  }

  /// The kind of credentials.
  package var description: String {
    switch self {
    case .none: "no credentials"
    case .password: "a user and a password"
    case .bearer: "a token"
    case .s3: "an access key"
    }
  }

  /// Hides user and secret from `dump`.
  package var customMirror: Mirror { Mirror(self, children: []) }

  private static func name(
    _ line: ArraySlice<UInt8>
  ) throws(CarrierFailure) -> String {
    guard !line.isEmpty, let name = String(validating: line, as: UTF8.self) else {
      throw CarrierFailure(.denied, "The first line of the credentials is empty or not UTF-8.")
    }
    return name
  }
}

/// A secret in guarded memory. It never shows in descriptions.
package final class SecretText: Sendable, CustomStringConvertible, CustomReflectable {
  private let bytes: SecretBytes

  /// Copies bytes; the source keeps its own.
  init(_ source: some Collection<UInt8>) {
    bytes = SecretBytes(count: source.count) { $0.copyBytes(from: source) }
  }

  /// Text before a secret. Nothing outside of guarded memory holds the secret meanwhile.
  init(_ prefix: StaticString, before secret: SecretText) {
    let length = prefix.utf8CodeUnitCount
    bytes = SecretBytes(count: length + secret.bytes.count) { target in
      target.copyBytes(from: UnsafeRawBufferPointer(start: prefix.utf8Start, count: length))
      secret.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: target[length...]).copyMemory(from: $0)
      }
    }
  }

  /// The pointer is valid only during the call.
  func withUnsafeBytes<Value, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try bytes.withUnsafeBytes(body)
  }

  /// Says that it is a secret.
  package var description: String { "a secret" }
  /// Hides the bytes from `dump` and debuggers' summaries.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// A copy that ends with a zero, for C. It is overwritten after the call.
  func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { copy in
      copy.initialize(repeating: 0)
      bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(copy).copyMemory(from: $0) }
      defer { if let base = copy.baseAddress { explicit_bzero(base, copy.count) } }
      return copy.baseAddress.map { body(UnsafePointer($0)) } ?? body("")
    }
  }
}
