import Hummingbird
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
  var http: HTTPResponse.Status

  /// The HTTP status follows from the command's, unless another is given.
  init(
    _ status: CommandStatus, code: String? = nil, _ message: String,
    http: HTTPResponse.Status? = nil
  ) {
    self.code = code ?? "\(status)"
    // Commands put `kith:` before it.
    self.message = message.prefix(1).uppercased() + message.dropFirst()
    self.status = status
    self.http = http ?? Self.http(status)
  }

  private static func http(_ status: CommandStatus) -> HTTPResponse.Status {
    switch status {
    case .usage: .badRequest
    case .notFound: .notFound
    case .refused: .unprocessableContent
    case .directory, .passphrase, .unexpected: .conflict
    case .unreachable: .serviceUnavailable
    default: .internalServerError
    }
  }

  init(_ error: any Error) {
    switch error {
    case let failure as PageFailure: self = failure
    case let error as KithError:
      let key = error.key.map { "\"\(Columns.printable($0, limit: 80))\": " } ?? ""
      self.init(
        CommandStatus(error.code), code: error.code.description, key + error.description)
    case is NIOTooManyBytesError:
      self.init(.usage, "the request is too long", http: .contentTooLarge)
    case is CancellationError: self.init(.failure, "the program ends")
    default: self.init(.failure, "\(error)")
    }
  }

  static let noCredentials = PageFailure(
    .refused, code: "credentials",
    "the page's address works once, and only while kith web runs: run kith web again",
    http: .unauthorized)

  static let foreign = PageFailure(
    .refused, code: "foreign", "only the page itself may ask this, at the address of kith web",
    http: .forbidden)

  var document: Document {
    .object([
      "code": .string(code), "message": .string(message), "status": .int(Int(status.rawValue)),
    ])
  }
}
