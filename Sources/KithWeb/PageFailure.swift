import Kith
import KithCommands
import KithTerminal
import NIOCore

/// A request that was not performed, as the page gets it.
struct PageFailure: Error {
  var code: String
  var message: String
  /// As the exit status of a command.
  var status: CommandStatus
  /// The status of the HTTP answer.
  var http: Int

  /// The HTTP status follows from the command's, unless another is given.
  init(
    _ status: CommandStatus, code: String? = nil, _ message: String,
    http: Int? = nil
  ) {
    self.code = code ?? "\(status)"
    // Commands put `kith:` before it.
    self.message = message.prefix(1).uppercased() + message.dropFirst()
    self.status = status
    self.http = http ?? Self.http(status)
  }

  private static func http(_ status: CommandStatus) -> Int {
    switch status {
    case .usage: 400
    case .notFound: 404
    case .refused: 422
    case .directory, .passphrase, .unexpected: 409
    case .unreachable: 503
    default: 500
    }
  }

  init(_ error: any Error) {
    switch error {
    case let failure as PageFailure: self = failure
    case let error as KithError:
      let key = error.key.map { "\"\(Columns.printable($0.text, limit: 80))\": " } ?? ""
      self.init(
        CommandStatus(error.code), code: error.code.description, key + error.description)
    case is NIOTooManyBytesError:
      self.init(.usage, "the request is too long", http: 413)
    case is CancellationError: self.init(.failure, "the program ends")
    default: self.init(.failure, "\(error)")
    }
  }

  static let noCredentials = PageFailure(
    .refused, code: "credentials",
    "the page's address works once, and only while kith web runs: run kith web again",
    http: 401)

  static let foreign = PageFailure(
    .refused, code: "foreign", "only the page itself may ask this, at the address of kith web",
    http: 403)

  var document: Document {
    .object([
      "code": .string(code), "message": .string(message), "status": .int(Int(status.rawValue)),
    ])
  }
}
