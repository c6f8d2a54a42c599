#if Web
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

    func rename(_ body: Rename) async throws {
      try await accounts.rename(DeviceID(ofPage: body.device), to: body.name)
    }

    struct Revoke: Decodable {
      var device: String
      var keep: [String]
    }

    func revoke(_ body: Revoke) async throws {
      let staying = try body.keep.map(DeviceID.init(ofPage:))
      try await accounts.revoke(DeviceID(ofPage: body.device), keeping: Set(staying))
    }

    struct Meet: Decodable { var address: String }

    /// Answers with the address, and what came of the first call.
    func meet(_ body: Meet) async throws -> Response {
      Response(.of(try await accounts.nodeAccess.meet(body.address)))
    }

    func forget(_ body: Meet) async throws {
      try await accounts.nodeAccess.forget(address: body.address)
    }

    func invite() throws {
      try requireAccount(true)
      try pairing.begin(.invite)
    }

    struct Join: Decodable {
      var code: String
      var name: String
      var address: String?
    }

    func join(_ body: Join) throws {
      try requireAccount(false)
      try pairing.begin(.join(code: body.code, name: body.name, address: body.address))
    }

    struct Answer: Decodable {
      var accept: Bool
      var device: String
    }

    func answerPairing(_ body: Answer) throws {
      pairing.answer(body.accept, about: try DeviceID(ofPage: body.device))
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

    struct SignIn: Decodable { var account: String }

    func signIn(_ body: SignIn) async throws {
      try requireAccount(false)
      let known = try await Accounts.known(accounts.configuration)
      guard let chosen = known.first(where: { $0.account.hex == body.account }) else {
        throw PageFailure(.notFound, "no device of this account is on this host")
      }
      try await accounts.signIn(to: chosen.account)
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

  extension DeviceID {
    init(ofPage hex: String) throws(PageFailure) {
      guard let device = DeviceID(hex: hex) else {
        throw PageFailure(.usage, "this is no device's id")
      }
      self = device
    }
  }
#endif
