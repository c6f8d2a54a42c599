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
  var quota: ControlQuota?

  init(_ error: KithError) {
    code = error.code.description
    message = error.message
    key = error.key
    device = error.device?.hex
    path = error.path
    actual = error.actual
    limit = error.limit
    triesLeft = error.triesLeft
    quota = error.quota.map(ControlQuota.init)
  }

  var error: KithError {
    var error = KithError(
      KithError.Code(description: code), message, key: key,
      device: device.flatMap { try? DeviceID(control: $0) }, path: path, actual: actual,
      limit: limit, quota: quota?.numbers)
    error.triesLeft = triesLeft
    return error
  }
}

/// The numbers of a quota refusal.
struct ControlQuota: Codable, Sendable {
  var usedBytes: Int
  var askedBytes: Int
  var limitBytes: Int
  var usedKeys: Int
  var askedKeys: Int
  var limitKeys: Int

  init(_ numbers: QuotaNumbers) {
    usedBytes = numbers.usedBytes
    askedBytes = numbers.askedBytes
    limitBytes = numbers.limitBytes
    usedKeys = numbers.usedKeys
    askedKeys = numbers.askedKeys
    limitKeys = numbers.limitKeys
  }

  var numbers: QuotaNumbers {
    QuotaNumbers(
      usedBytes: usedBytes, askedBytes: askedBytes, limitBytes: limitBytes, usedKeys: usedKeys,
      askedKeys: askedKeys, limitKeys: limitKeys)
  }
}

extension KithError {
  static let malformedControl = KithError(
    .control, "The other side of the control socket sent something else than agreed.")
}
