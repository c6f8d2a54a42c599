import ArgumentParser
package import Kith
import KithCore
import KithTerminal
import Synchronization

struct JoinCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "join",
    abstract: "Join an account as a new device, by a code.",
    discussion: """
      Run `kith invite` on a device of the account, and type its code here. That device is found \
      on the same network, or at --peer. Compare the fingerprints on both before you say yes.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "The code or token; - reads standard input. Default: asks, unseen by other users and history."
    ))
  var code: String?

  @Flag(name: [.short, .long], help: "Join any holder of the code without asking.")
  var yes = false

  @Option(
    help: ArgumentHelp(
      "The inviting device's address. Default: the token's, or searched.",
      valueName: "host:port"))
  var peer: String?

  @OptionGroup var device: NewDeviceOptions

  func validate() throws {
    if let peer { try PeerOption.check([peer]) }
  }

  func run() async throws {
    let console = options.console
    // Check before asking a person for a code.
    try options.checkNewDevice()
    let first = try text()
    do throws(PairingCodeError) {
      if !Node.isToken(first) { _ = try PairingCode(text: first) }
    } catch {
      throw CommandFailure(.refused, "this is no pairing code: \(error). Nothing was sent.")
    }
    // A token in a script is confirmation enough; a code needs a person.
    let isSure = yes || (Node.isToken(first) && !Terminal.hasInput)
    try Confirmation.demandPerson(unless: isSure, " to join any holder of the code")
    let (name, peer) = (device.chosenName, peer)
    let confirm: @Sendable (PairingDevice, String) async -> Bool = { inviter, fingerprint in
      for line in inviter.introduction("invites", beside: fingerprint) { console.talk(line) }
      console.talk("Compare both with what the other device shows, and say yes there.")
      guard isSure || Confirmation.isGiven("Does it show the same two? Join it?", console) else {
        return false
      }
      console.talk("Waiting for \(inviter.shownName) to say yes there…")
      return true
    }
    let passphrase = try device.passphrase()
    if peer == nil, !Node.isToken(first) { console.talk("Looking for the other device…") }
    let shown = JoinProgressLine(console)
    let (summary, directory, arrival) = try await Accounts.join(
      options.accounts(), noted: options.accounts(passphrase: passphrase?.answer)
    ) { directory, made throws(KithError) in
      var text = first
      while true {
        do throws(KithError) {
          return try await Node.join(
            directory: directory, name: name, code: text, address: peer, passphrase: passphrase,
            onProgress: { shown.show($0) }, made: made, confirm: confirm)
        } catch  where Self.mayBeTypedAgain(text, after: error) {
          console.warn(CommandFailure(error)?.message ?? error.description)
          guard let again = try? typed() else { throw error }
          text = again
        }
      }
    }
    let status = try await options.withNode(passphrase: passphrase?.answer) {
      try await $0.status()
    }
    let report = AccountReport(
      summary: summary, directory: directory, others: status.others,
      partialStores: shown.partialStores)
    try options.print(report.document, text: report.text, after: "this device has joined")
    let own = status.devices.first(where: \.isThisDevice)
    let notice = own.flatMap {
      DuplicateNames.notice($0.name, $0.fingerprint, among: status.devices)
    }
    if let notice { console.talk(notice) }
    try arrival.get()
    console.talk("Joined.")
    for problem in status.problems where problem.isOfClocks { console.warn(problem.description) }
    if let partial = shown.partial { console.talk(partial) }
    if let unshown = status.unshownNotice { console.talk(unshown) }
    options.offerService()
  }

  private static func mayBeTypedAgain(_ text: String, after error: KithError) -> Bool {
    Terminal.hasInput && !Node.isToken(text) && error.code == .pairingCode
      && (error.triesLeft ?? 0) > 0
  }

  private func text() throws -> String {
    if let code, code != "-" { return code }
    return Terminal.hasInput ? try typed() : try InputText.line(of: "-")
  }

  /// Asks until the text can be a code or a token.
  private func typed() throws -> String {
    while true {
      options.console.prompt("Code: ")
      let text = try InputText.line(of: "-")
      if Node.isToken(text) { return text }
      do throws(PairingCodeError) {
        _ = try PairingCode(text: text)
        return text
      } catch {
        options.console.warn("this is no pairing code: \(error); type it again")
      }
    }
  }
}

extension JoinProgress {
  /// Names the limit by which stores are not whole; nil if all are.
  package var partialNotice: String? {
    guard partialStores > 0 else { return nil }
    return "\(Format.count(partialStores, "store")) came only in part: of one device's data, "
      + "at most \(Format.bytes(Limits.unopenedAuthorBytes)) are kept in stores that no program "
      + "here has opened. The rest comes once a program opens them and the node runs."
  }
}

/// Shows progress when the stores are known, then at most every two seconds, and when all are pulled.
final class JoinProgressLine: Sendable {
  private static let pause = Duration.seconds(2)

  private let console: Console
  private let printed = Mutex<(progress: JoinProgress, at: ContinuousClock.Instant)?>(nil)
  private let newest = Mutex<JoinProgress?>(nil)

  init(_ console: Console) {
    self.console = console
  }

  /// The number of stores that came only in part.
  var partialStores: Int { newest.withLock { $0?.partialStores ?? 0 } }

  var partial: String? { newest.withLock { $0?.partialNotice } }

  func show(_ progress: JoinProgress) {
    if let line = line(progress) { console.talk(line) }
  }

  /// Nil if it is not due.
  func line(_ progress: JoinProgress) -> String? {
    newest.withLock { $0 = progress }
    let isWhole = progress.stores > 0 && progress.pulledStores == progress.stores
    let isDue = printed.withLock { printed in
      if let last = printed {
        let isNews = isWhole || last.progress.stores != progress.stores
        guard last.progress != progress, isNews || ContinuousClock.now - last.at >= Self.pause
        else { return false }
      }
      printed = (progress, .now)
      return true
    }
    guard isDue else { return nil }
    guard progress.stores > 0 else { return "Getting what the account has…" }
    let counts =
      "\(progress.pulledStores) of \(Format.count(progress.stores, "store")), "
      + Format.count(progress.changeSets, "change set")
    return isWhole
      ? "Got what the account has: \(counts)." : "Getting what the account has: \(counts)…"
  }
}
