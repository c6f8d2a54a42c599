internal import Glibc
internal import KithCore
public import KithCrypto
internal import KithStorage

/// Asks for the passphrase of a directory's secrets.
public typealias PassphraseQuestion = @Sendable () throws(KithError) -> Passphrase

extension Passphrase {
  /// Answers the question with this passphrase.
  public var answer: PassphraseQuestion {
    { @Sendable () throws(KithError) -> Passphrase in self }
  }
}

/// The source of a passphrase without a person (`Docs/Decisions/passphrase.md`).
///
/// A file's bytes are the passphrase, without one final line end: LF or CR LF. An editor's
/// byte-order mark is refused, because nobody can type it.
///
/// ```swift
/// configuration.passphrase = PassphraseSource.file("/run/keys/kith").read
/// ```
package enum PassphraseSource: Sendable, Hashable {
  /// A file of mode 0600 or 0400 that belongs to this user or to root.
  case file(String)
  /// A file that systemd made of a credential, with systemd's mode and owner.
  case credential(String)
  /// An environment variable, which is weaker than a file: child processes and readers of the
  /// process's memory or `/proc` entry get it.
  case variable(String)

  package static let credentialName = "kith-passphrase"
  /// The variable that names a file.
  package static let fileVariable = "KITH_PASSPHRASE_FILE"
  /// The variable with the passphrase.
  package static let variable = "KITH_PASSPHRASE"

  /// The first existing of: `file`, the file of `KITH_PASSPHRASE_FILE`, the systemd credential
  /// `kith-passphrase`, `KITH_PASSPHRASE`. Empty variables count as missing.
  package static func first(
    file: String? = nil, environment: [String: String]
  ) -> PassphraseSource? {
    if let file = file ?? environment.variable(fileVariable) { return .file(file) }
    if let directory = environment.variable("CREDENTIALS_DIRECTORY") {
      let path = directory + "/" + credentialName
      // A unit may have only other credentials.
      if access(path, F_OK) == 0 { return .credential(path) }
    }
    return environment.variable(variable) == nil ? nil : .variable(variable)
  }

  /// Reads the passphrase.
  ///
  /// - Throws: ``KithError`` with `passphrase` if there is none, or if others may read the file.
  @Sendable package func read() throws(KithError) -> Passphrase {
    switch self {
    case .file(let path): try Self.read(path, allowing: 0o600)
    case .credential(let path): try Self.read(path, allowing: 0o770)
    case .variable(let name):
      try Self.read(variable: name)
    }
  }

  private static func read(variable name: String) throws(KithError) -> Passphrase {
    guard let text = getenv(name) else {
      throw KithError(.passphrase, "The environment has no \(name) any more.")
    }
    var bytes = [UInt8](UnsafeRawBufferPointer(start: text, count: strlen(text)))
    return try passphrase(&bytes, name)
  }

  /// Fails if the file's mode has other bits.
  private static func read(_ path: String, allowing mode: mode_t) throws(KithError) -> Passphrase {
    func failure(_ message: String) -> KithError { KithError(.passphrase, message, path: path) }
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      throw failure(
        "The file of the passphrase cannot be opened: \(String(cString: strerror(errno))).")
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw failure("The passphrase must be in a plain file.")
    }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw failure(
        "The file of the passphrase belongs to another user (\(status.st_uid)). Name a file of your own."
      )
    }
    guard status.st_mode & 0o777 & ~mode == 0 else {
      throw failure(
        "Others may read the file (mode \(String(status.st_mode & 0o777, radix: 8))). If it holds "
          + "nothing but the passphrase, run: chmod 600 \(ShellText.quoted(path))")
    }
    // One more byte shows excess, two are for a line end.
    var bytes = [UInt8](repeating: 0, count: Passphrase.maximumBytes + 3)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else {
      throw failure(
        "The file of the passphrase cannot be read: \(String(cString: strerror(errno))).")
    }
    bytes.removeLast(bytes.count - count)
    if bytes.last == UInt8(ascii: "\n") {
      bytes.removeLast()
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    }
    let hasMark = bytes.starts(with: "\u{FEFF}".utf8)
    let passphrase = try passphrase(&bytes, path)
    guard !hasMark else {
      throw failure(
        "The file of the passphrase begins with a byte-order mark, which nobody can type. Save it "
          + "without one.")
    }
    return passphrase
  }

  private static func passphrase(
    _ bytes: inout [UInt8], _ path: String
  ) throws(KithError) -> Passphrase {
    let count = bytes.count
    let passphrase = Passphrase(zeroing: &bytes)
    guard (1...Passphrase.maximumBytes).contains(count) else {
      throw KithError(
        .passphrase,
        count == 0
          ? "The passphrase is empty."
          : "A passphrase has at most \(Passphrase.maximumBytes) bytes; this is something else.",
        path: path)
    }
    return passphrase
  }
}
