/// A request to one server, whose address the client knows.
struct HTTPRequest {
  var method: String
  /// With its query, percent-encoded, beginning with a slash.
  var target: String
  var headers: [(name: String, value: String)] = []
  var body: [UInt8]?
  /// Bytes of the answer's body; a longer one fails.
  var limit = CarrierLimits.answerBytes
}

struct HTTPAnswer: Sendable {
  var status: Int
  /// Names in small letters.
  var headers: [(name: String, value: String)]
  var body: [UInt8]
  /// Which ways to sign in the server offers, if it has asked.
  var offered: HTTPAuthentication

  /// The first header of a name in small letters.
  func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  var isSuccess: Bool { (200..<300).contains(status) }
}

/// How a request signs in.
enum HTTPLogin: Sendable {
  case none
  case password(user: String, SecretText, HTTPAuthentication)
  case bearer(SecretText)
}
