// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

public import CKith
internal import Glibc
internal import Kith
internal import KithCore
internal import Logging
internal import Synchronization

/// A `kith_accounts`.
final class Account: Handled {
  let accounts: Accounts

  private struct State {
    var works: [Weak] = []
    var isClosed = false
  }

  private struct Weak {
    weak var work: Work?
  }

  private let state = Mutex(State())

  init(_ configuration: Accounts.Configuration) throws(KithError) {
    accounts = try Accounts(configuration)
  }

  func end() { try? close() }

  /// The accounts; throws once they are closed.
  func opened() throws(KithError) -> Accounts {
    if state.withLock({ $0.isClosed }) { throw .closedAccounts }
    return accounts
  }

  /// Begins work that ends with the accounts.
  func begin(
    _ body: @escaping @Sendable (Accounts, Work) async throws -> PropertyListValue
  ) throws(KithError) -> Work {
    let accounts = accounts
    return try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedAccounts }
      let work = try Work { work in try await body(accounts, work) }
      state.works.removeAll { $0.work == nil }
      state.works.append(Weak(work: work))
      return work
    }
  }

  /// A second call waits for the same work, which may still end.
  func close() throws(KithError) {
    let works = state.withLock { state in
      state.isClosed = true
      return state.works.compactMap(\.work)
    }
    for work in works { work.cancel() }
    for work in works { _ = try? work.result() }
    try accounts.close()
  }
}

extension Accounts.Configuration {
  init(_ options: kith_options) throws(KithError) {
    self.init()
    if let path = options.directory { directory = try Argument.text(path, "options.directory") }
    if let hosts = try Argument.texts(options.hosts, "options.hosts") { self.hosts = hosts }
    if let peers = try Argument.texts(options.peers, "options.peers") { self.peers = peers }
    if options.port == KITH_ANY_PORT {
      port = 0
    } else if options.port != 0 {
      guard let given = UInt16(exactly: options.port) else {
        throw .invalid("The argument options.port is no TCP port.")
      }
      port = given
    }
    try Argument.flags(
      options.flags, known: KITH_NO_DISCOVERY | KITH_KEEP_HISTORY | KITH_NO_HISTORY | KITH_LOG,
      "options.flags")
    func isSet(_ flag: Int) -> Bool { options.flags & UInt32(flag) != 0 }
    guard !isSet(KITH_KEEP_HISTORY) || !isSet(KITH_NO_HISTORY) else {
      throw .invalid("The argument options.flags both keeps the history and does not.")
    }
    discoversPeers = !isSet(KITH_NO_DISCOVERY)
    if isSet(KITH_KEEP_HISTORY) { keepsHistory = true }
    if isSet(KITH_NO_HISTORY) { keepsHistory = false }
    let isLogged = isSet(KITH_LOG)
    logger = Logger(label: "kith") { label in
      if isLogged { return StreamLogHandler.standardError(label: label) }
      return SwiftLogNoOpLogHandler()
    }
    if let text = options.passphrase {
      // Not through a String, whose memory nobody zeroes.
      var bytes = Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
      let passphrase = Passphrase(zeroing: &bytes)
      self.passphrase = { () throws(KithError) in passphrase }
    }
  }
}

extension Policy {
  init(_ policy: kith_policy) {
    self.init()
    if policy.total_bytes != 0 { totalBytes = Int(policy.total_bytes) }
    if policy.keys != 0 { keys = Int(policy.keys) }
    if policy.key_bytes != 0 { keyBytes = Int(policy.key_bytes) }
    if policy.value_bytes != 0 { valueBytes = Int(policy.value_bytes) }
  }
}

// MARK: - Interface

private func account(_ accounts: Pointer) throws(KithError) -> Account {
  try Argument.object(accounts, "accounts")
}

@c @implementation
public func kith_accounts_open(
  _ options: UnsafePointer<kith_options>?, _ error: ErrorOut
) -> Pointer {
  new(error) { try Account(.init(Argument.options(options, kith_options(), "options"))) }
}

@c @implementation
public func kith_accounts_run(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  new(error) {
    let work = try account(accounts).begin { accounts, work in
      try await accounts.run { work.noteBegun() }
      return [:]
    }
    try work.waitUntilBegun()
    return work
  }
}

@c @implementation
public func kith_accounts_close(_ accounts: Pointer, _ error: ErrorOut) -> Bool {
  succeeds(error) { try account(accounts).close() }
}

@c @implementation
public func kith_accounts_store(
  _ accounts: Pointer, _ identifier: Text, _ policy: UnsafePointer<kith_policy>?,
  _ error: ErrorOut
) -> Pointer {
  new(error) {
    let account = try account(accounts)
    let identifier = try Argument.text(identifier, "identifier")
    let policy = Policy(try Argument.options(policy, kith_policy(), "policy"))
    return Store(try account.opened().store(identifier, policy: policy), of: account)
  }
}

@c @implementation
public func kith_accounts_signed_in(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { try account(accounts).opened().signedIn.map { .string($0.hex) } }
}

@c @implementation
public func kith_accounts_known(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) {
    .array(
      try account(accounts).opened().known.map { known in
        .members([
          "account": .string(known.account.hex), "directory": .string(known.directory),
          "isSignedIn": .bool(known.isSignedIn),
        ])
      })
  }
}

@c @implementation
public func kith_accounts_status(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) {
    let accounts = try account(accounts).opened()
    return try CallingThread.run { () async throws(KithError) in
      try PropertyListValue(encoding: try await accounts.status())
    }
  }
}

@c @implementation
public func kith_accounts_watch_status(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  new(error) {
    try account(accounts).begin { accounts, work in
      for await status in accounts.statusUpdates {
        work.tell(
          .members(["event": "status", "status": try PropertyListValue(encoding: status)]),
          replaces: true)
      }
      return [:]
    }
  }
}

@c @implementation
public func kith_accounts_create_account(
  _ accounts: Pointer, _ name: Text, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let name = try Argument.text(name, "name")
    return try account(accounts).begin { accounts, work in
      let made = try await accounts.createAccount(name: name) {
        (summary, key) throws(KithError) in
        let isSeen = try work.askBlocking(
          .members([
            "account": .string(summary.account.hex), "device": .string(summary.device.hex),
            "event": "recoveryKey", "recoveryKey": .string(key),
          ]))
        guard isSeen else { throw KithError(.declined, "The account was not created.") }
      }
      return made.summary.document(recoveryKey: made.recoveryKey)
    }
  }
}

@c @implementation
public func kith_accounts_sign_in(
  _ accounts: Pointer, _ code: Text, _ name: Text, _ address: Text, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let (code, name) = (try Argument.text(code, "code"), try Argument.text(name, "name"))
    let address = try address == nil ? nil : Argument.text(address, "address")
    return try account(accounts).begin { accounts, work in
      try await accounts.signIn(code: code, name: name, address: address) { progress in
        work.tell(
          .members([
            "changeSets": .number(progress.changeSets), "event": "progress",
            "pulledStores": .number(progress.pulledStores), "stores": .number(progress.stores),
          ]))
      } confirm: { inviter, fingerprint in
        await work.ask(
          .members([
            "event": "confirm", "fingerprint": .string(fingerprint), "inviter": inviter.document,
          ]))
      }.document()
    }
  }
}

@c @implementation
public func kith_accounts_sign_in_to(
  _ accounts: Pointer, _ id: Text, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let id = try Argument.text(id, "account")
    return try account(accounts).begin { accounts, _ in
      guard let chosen = AccountID(hex: id) else {
        throw KithError(.missing, "No account of this id is here.")
      }
      try await accounts.signIn(to: chosen)
      return [:]
    }
  }
}

@c @implementation
public func kith_accounts_sign_out(_ accounts: Pointer, _ error: ErrorOut) -> Pointer {
  new(error) {
    try account(accounts).begin { accounts, _ in
      try await accounts.signOut()
      return [:]
    }
  }
}

@c @implementation
public func kith_accounts_invite(
  _ accounts: Pointer, _ addresses: Texts, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let addresses = try Argument.texts(addresses, "addresses") ?? []
    return try account(accounts).begin { accounts, work in
      let device = try await accounts.invite(addresses: addresses) { invitation in
        work.tell(
          .members([
            "addresses": .texts(invitation.addresses), "code": .string(invitation.code),
            "event": "invitation", "token": .string(invitation.token),
          ]))
        for await candidate in invitation.candidates {
          let isWelcome = await work.ask(
            .members(["device": candidate.device.document, "event": "candidate"]))
          guard isWelcome else { continue }
          candidate.accept()
          break
        }
      }
      return .members(["device": .string(device.hex)])
    }
  }
}

extension AccountSummary {
  fileprivate func document(recoveryKey: String? = nil) -> PropertyListValue {
    .members([
      "account": .string(account.hex), "device": .string(device.hex), "name": .string(name),
      "recoveryKey": recoveryKey.map { .string($0) },
    ])
  }
}

extension PairingDevice {
  fileprivate var document: PropertyListValue {
    .members([
      "address": .string(address), "fingerprint": .string(fingerprint), "id": .string(id.hex),
      "name": .string(name),
    ])
  }
}
