import Hummingbird
import Kith
import KithCommands
import KithCore

/// The requests about devices and the account.
extension Page {
  struct Rename: Decodable {
    var device: String
    var name: String
  }

  func rename(_ body: Rename) async throws -> Response {
    try await accounts.rename(Query.device(body.device), to: body.name)
    return Response(.members([]))
  }

  struct Revoke: Decodable {
    var device: String
    var keep: [String]
  }

  func revoke(_ body: Revoke) async throws -> Response {
    let staying = try body.keep.map { try Query.device($0) }
    try await accounts.revoke(Query.device(body.device), keeping: Set(staying))
    return Response(.members([]))
  }

  struct Meet: Decodable { var address: String }

  func meet(_ body: Meet) async throws -> Response {
    try await accounts.nodeAccess.meet(body.address)
    return Response(.members([]))
  }

  func invite() throws -> Response {
    try requireAccount(true)
    try pairing.begin(.invite)
    return Response(.members([]))
  }

  struct Join: Decodable {
    var code: String
    var name: String
    var address: String?
  }

  func join(_ body: Join) async throws -> Response {
    try requireAccount(false)
    try pairing.begin(.join(code: body.code, name: body.name, address: body.address))
    return Response(.members([]))
  }

  struct Answer: Decodable {
    var accept: Bool
    var device: String
  }

  func answerPairing(_ body: Answer) async throws -> Response {
    pairing.answer(body.accept, about: try Query.device(body.device))
    return Response(.members([]))
  }

  struct Create: Decodable { var name: String }

  func createAccount(_ body: Create) async throws -> Response {
    try requireAccount(false)
    let made = try await accounts.createAccount(name: body.name)
    return Response(
      .object([
        "account": .string(made.summary.account.hex),
        "device": NodeStatus.Device(id: made.summary.device, name: made.summary.name).document,
        "recoveryKey": .string(made.recoveryKey),
      ]))
  }

  private func requireAccount(_ isNeeded: Bool) throws(PageFailure) {
    guard (accounts.signedIn != nil) != isNeeded else { return }
    throw PageFailure(
      .directory,
      isNeeded
        ? "nobody is signed in here; create an account, or join one"
        : "somebody is signed in here; sign out first: kith account sign-out")
  }
}
