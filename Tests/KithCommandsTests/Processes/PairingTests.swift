import Foundation
import Kith
import KithCore
import KithTerminal
import KithTestSupport
import Testing

/// `kith invite` and `kith join` as processes.
@Suite("Pairing", .timeLimit(.minutes(5)))
struct PairingTests {
  @Test func `a code lets a device in`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    try await household.start(alpha)
    let (invitation, code, address) = try await household.invite(alpha)
    #expect(code.wholeMatch(of: /[0-9]{4}-[0-9]{4}/) != nil)
    let beta = Household.Member(name: "beta", directory: household.root.appending(path: "beta"))

    // Wrong in one digit: nothing is sent, and no try is spent.
    let digits = Array(code)
    let mistyped = String(digits.dropLast()) + (digits.last == "0" ? "1" : "0")
    let early = try await household.run(
      beta, "join", mistyped, "--yes", "--peer", address, "--name", "beta")
    #expect(early.status == CommandStatus.refused.rawValue)
    #expect(early.talk.contains("Nothing was sent"))

    // Another code: both are told.
    let other = try #require(
      (0..<10).lazy.map { "0000-010\($0)" }.first {
        (try? PairingCode(text: $0)) != nil && $0 != code
      })
    let wrong = try await household.run(
      beta, "join", other, "--yes", "--peer", address, "--name", "beta")
    #expect(wrong.status == CommandStatus.refused.rawValue)
    #expect(wrong.talk.contains("2 tries left"), "\(wrong.talk)")
    try await eventually("the inviter to be told") {
      invitation.saidSoFar.contains("2 tries are left")
    }

    // Nobody can answer, and nobody said --yes.
    let unanswered = try await household.run(
      beta, "join", "--peer", address, "--name", "beta", input: Data((code + "\n").utf8))
    #expect(unanswered.status == CommandStatus.refused.rawValue)
    #expect(unanswered.talk.contains("--yes"))

    let spoken = code.replacing("-", with: " ") + "\n"
    let joined = try await household.run(
      beta, "join", "--yes", "--peer", address, "--name", "beta", input: Data(spoken.utf8))
    #expect(joined.status == 0, "\(joined.talk)")
    let end = try await invitation.wait()
    #expect(end.status == 0)
    #expect(end.talk.contains("beta is in."))
    // Both show both fingerprints.
    let prints = joined.talk.matches(of: /[0-9A-Z]{4}(-[0-9A-Z]{4}){3}/).map { String($0.0) }
    #expect(Set(prints).count == 2)
    for text in prints { #expect(end.talk.contains(text)) }
    try await household.stop(alpha)
  }

  @Test func `a token is told together with where it leads`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    try await household.start(alpha)
    let invitation = try KithProcess(
      [
        "invite", "--token", "--yes", "--json", "--address", "192.0.2.1", "--address",
        "2001:db8::1",
        "--directory", alpha.directory.path,
      ], in: household.root)
    try await eventually("a token") { invitation.printedSoFar.hasSuffix("\n") }
    let shown = try #require(
      try JSONSerialization.jsonObject(with: Data(invitation.printedSoFar.utf8))
        as? [String: Any])
    let token = try InvitationToken(text: #require(shown["token"] as? String))
    #expect(
      shown["addresses"] as? [String] == ["192.0.2.1:\(token.port)", "[2001:db8::1]:\(token.port)"])
    invitation.send(SIGTERM)
    _ = try await invitation.wait()
  }

  @Test func `devices of one name are named, and names that only look alike refused`() async throws
  {
    let household = try Household()
    let alpha = try await household.create("laptop")
    let token = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory", alpha.directory.path,
      ],
      in: household.root)
    try await eventually("a token") { token.printedSoFar.hasSuffix("\n") }
    let second = Household.Member(name: "laptop", directory: household.root.appending(path: "b"))
    let joined = try await household.run(
      second, "join", "-", "--name", "laptop", input: Data(token.printedSoFar.utf8))
    #expect(joined.status == 0, "\(joined)")
    let invited = try await token.wait()
    for talk in [joined.talk, invited.talk] {
      #expect(talk.contains("The account has another device called laptop: "), "\(talk)")
    }
    let advice = try #require(joined.talk.firstMatch(of: /kith (devices rename \S+) NAME/)?.1)
    let listed = try await household.run(second, "devices")
    #expect(listed.talk.contains("2 devices are called laptop: "), "\(listed)")
    // The advice works.
    let rename = advice.split(separator: " ").map(String.init)
    let renamed = try await KithProcess.run(
      rename + ["desktop", "--directory", second.directory.path], in: household.root)
    #expect(renamed.status == 0 && !renamed.talk.contains("another device"), "\(renamed)")
    #expect(try await household.run(second, "devices").talk.isEmpty)
    let again = try await KithProcess.run(
      rename + ["laptop", "--directory", second.directory.path], in: household.root)
    #expect(again.talk.contains("another device called laptop"), "\(again)")
    // The same to the eye, and another to the machine.
    for name in ["lаptop", "laptop ", "ｌaptop", "lap\u{200B}top", "lap\u{E0041}top"] {
      let refused = try await KithProcess.run(
        rename + [name, "--directory", second.directory.path], in: household.root)
      #expect(refused.status == CommandStatus.refused.rawValue, "\(name): \(refused)")
      #expect(!refused.talk.contains("--name"), "\(refused)")
    }

    let other = try KithProcess(
      [
        "invite", "--yes", "--token", "--address", "127.0.0.1", "--directory", alpha.directory.path,
      ],
      in: household.root)
    try await eventually("a token") { other.printedSoFar.hasSuffix("\n") }
    let third = Household.Member(name: "c", directory: household.root.appending(path: "c"))
    let refused = try await household.run(
      third, "join", "-", "--name", "laрtop", input: Data(other.printedSoFar.utf8))
    #expect(refused.status == CommandStatus.refused.rawValue, "\(refused)")
    #expect(refused.talk.contains("declined"), "\(refused)")
    let end = try await other.wait()
    #expect(end.status == CommandStatus.refused.rawValue, "\(end)")
    #expect(end.talk.contains("looks like that of another device"), "\(end)")
  }

  @Test func `an invitation shows its token as a QR code where asked`() async throws {
    let household = try Household()
    let alpha = try await household.create("alpha")
    try await household.start(alpha)
    let (invitation, _, _) = try await household.invite(alpha, "--qr", "--json")
    let line = try #require(invitation.printedSoFar.split(separator: "\n").first)
    let shown = try #require(
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    #expect((shown["token"] as? String)?.hasPrefix("kith1-") == true)
    #expect((shown["code"] as? String)?.count == 9)
    #expect((shown["addresses"] as? [String])?.isEmpty == false)
    let drawn = invitation.saidSoFar
    #expect(drawn.contains("█▀") || drawn.contains("libqrencode4"))
    invitation.send(SIGTERM)
    _ = try await invitation.wait()
    try await household.stop(alpha)
  }
}
