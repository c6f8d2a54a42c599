// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

public import CKith
internal import Kith

/// Runs a call: stores its error, or that there is none, where the program asks for it. Nil: it failed.
func call<Result>(_ out: ErrorOut, _ body: () throws -> Result) -> Result? {
  out?.pointee = nil
  do {
    return try body()
  } catch {
    out?.pointee = Failure(KithError(any: error)).handle
    return nil
  }
}

/// Runs a call that only succeeds or fails.
func succeeds(_ out: ErrorOut, _ body: () throws -> Void) -> Bool {
  call(out, body) != nil
}

/// Runs a call that returns a new handle, or NULL for nothing.
func new(_ out: ErrorOut, _ body: () throws -> (any Handled)?) -> Pointer {
  call(out, body).flatMap { $0?.handle }
}

/// Runs a call that returns a new value, or NULL for nothing.
func newValue(_ out: ErrorOut, _ body: () throws -> PropertyListValue?) -> Pointer {
  call(out, body).flatMap { $0?.handle }
}

extension KithError {
  /// A mistake of the calling program.
  static func invalid(_ message: String) -> KithError {
    KithError(.init(description: "invalidArgument"), message)
  }

  static let closedAccounts = KithError(.closed, "The accounts were closed. Open them again.")

  static let noHandlesLeft = KithError(
    .inputOutput, "The program holds 16 million handles. Free those that it no longer needs.")

  /// Any error of a call or task.
  init(any error: any Error) {
    switch error {
    case let error as KithError: self = error
    case is CancellationError: self.init(.cancelled, "The task was cancelled.")
    default: self.init(.inputOutput, "\(error)", cause: error)
    }
  }

  /// The sentences after the first.
  var remedy: Substring {
    guard let end = message.firstRange(of: ". ") else { return "" }
    return message[end.upperBound...]
  }

  var number: kith_code {
    Self.numbers[code] ?? KITH_OTHER
  }

  private static let numbers: [Code: kith_code] = [
    .init(description: "invalidArgument"): KITH_INVALID_ARGUMENT,
    .invalidKey: KITH_INVALID_KEY, .valueTooLarge: KITH_VALUE_TOO_LARGE,
    .quotaExceeded: KITH_QUOTA_EXCEEDED, .unsupportedValue: KITH_UNSUPPORTED_VALUE,
    .invalidStoreIdentifier: KITH_INVALID_STORE_IDENTIFIER, .invalidPolicy: KITH_INVALID_POLICY,
    .tooManyStores: KITH_TOO_MANY_STORES, .unexpectedValue: KITH_UNEXPECTED_VALUE,
    .conflict: KITH_CONFLICT, .unreadable: KITH_UNREADABLE, .unknownStore: KITH_UNKNOWN_STORE,
    .closed: KITH_CLOSED, .alreadyRunning: KITH_ALREADY_RUNNING, .notRunning: KITH_NOT_RUNNING,
    .timedOut: KITH_TIMED_OUT, .cancelled: KITH_CANCELLED, .diskFull: KITH_DISK_FULL,
    .readOnly: KITH_READ_ONLY, .damaged: KITH_DAMAGED, .newerSchema: KITH_NEWER_SCHEMA,
    .olderSchema: KITH_OLDER_SCHEMA, .wrongFileType: KITH_WRONG_FILE_TYPE, .inUse: KITH_IN_USE,
    .missing: KITH_MISSING, .alreadyExists: KITH_ALREADY_EXISTS,
    .unsafePermissions: KITH_UNSAFE_PERMISSIONS, .passphrase: KITH_PASSPHRASE,
    .inputOutput: KITH_INPUT_OUTPUT, .notAMember: KITH_NOT_A_MEMBER, .revoked: KITH_REVOKED,
    .invalidDevice: KITH_INVALID_DEVICE, .recoveryKey: KITH_RECOVERY_KEY,
    .pairingCode: KITH_PAIRING_CODE, .declined: KITH_DECLINED, .cloned: KITH_CLONED,
    .tooManyIncarnations: KITH_TOO_MANY_INCARNATIONS, .diverged: KITH_DIVERGED,
    .removalsUnseen: KITH_REMOVALS_UNSEEN, .clocksDiffer: KITH_CLOCKS_DIFFER,
    .dataAhead: KITH_DATA_AHEAD, .network: KITH_NETWORK, .control: KITH_CONTROL,
    .invalidName: KITH_INVALID_NAME,
  ]
}

/// An error of a call, with its texts.
final class Failure: Handled {
  let code: kith_code
  let name, message, remedy: CText
  let key, path: CText?
  let triesLeft: Int

  init(_ error: KithError) {
    code = error.number
    name = CText(error.code.description)
    message = CText(error.message)
    remedy = CText(error.remedy.utf8)
    key = error.key.map { CText($0.text) }
    path = error.path.map { CText($0) }
    triesLeft = error.triesLeft ?? -1
  }

  static let empty = CText("")
  static let ok = CText("ok")
}

private func failure(_ error: Pointer) -> Failure? {
  Registry.shared.object(error, Failure.self)
}

@c @implementation
public func kith_error_code(_ error: Pointer) -> kith_code {
  failure(error)?.code ?? KITH_OK
}

@c @implementation
public func kith_error_name(_ error: Pointer) -> Text {
  (failure(error)?.name ?? Failure.ok).text
}

@c @implementation
public func kith_error_message(_ error: Pointer) -> Text {
  (failure(error)?.message ?? Failure.empty).text
}

@c @implementation
public func kith_error_remedy(_ error: Pointer) -> Text {
  (failure(error)?.remedy ?? Failure.empty).text
}

@c @implementation
public func kith_error_key(_ error: Pointer, _ length: LengthOut) -> Text {
  failure(error)?.key?.text(length)
}

@c @implementation
public func kith_error_path(_ error: Pointer) -> Text {
  failure(error)?.path?.text
}

@c @implementation
public func kith_error_tries_left(_ error: Pointer) -> CInt {
  CInt(clamping: failure(error)?.triesLeft ?? -1)
}
