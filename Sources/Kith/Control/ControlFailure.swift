internal import KithCore

/// A ``KithError`` without its cause.
struct ControlFailure: Codable, Sendable {
  var code: String
  var message: String
  var key: String?
  var device: String?
  var path: String?
  var actual: Int?
  var limit: Int?
  var triesLeft: Int?
  var quota: QuotaNumbers?

  init(_ error: KithError) {
    code = error.code.description
    message = error.message
    key = error.key
    device = error.device?.hex
    path = error.path
    actual = error.actual
    limit = error.limit
    triesLeft = error.triesLeft
    quota = error.quota
  }

  var error: KithError {
    var error = KithError(
      KithError.Code(description: code), message, key: key,
      device: device.flatMap { try? DeviceID(control: $0) }, path: path, actual: actual,
      limit: limit, quota: quota)
    error.triesLeft = triesLeft
    return error
  }
}

extension KithError {
  static let malformedControl = KithError(
    .control, "The other side of the control socket sent something else than agreed.")
}
