import ArgumentParser
import Kith
import KithCarriers
import KithTerminal

/// How a carrier's credentials are given: by a file, or on the terminal, never as arguments.
struct CarrierCredentialsOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The user and the password, or the two keys, a line each; or a token. - is standard input. Default: asks.",
      valueName: "file"),
    completion: .file())
  var credentialsFile: String?

  @Flag(help: "The storage asks for no credentials.")
  var noCredentials = false

  func validate() throws {
    guard credentialsFile == nil || !noCredentials else {
      throw ValidationError("Give --credentials-file or --no-credentials.")
    }
  }

  /// Nil: none are needed.
  func text(for address: CarrierAddress, _ console: Console) throws -> String? {
    let kind = address.kind
    if kind == .folder {
      guard credentialsFile == nil else {
        throw CommandFailure(.usage, "a folder needs no credentials")
      }
      return nil
    }
    if noCredentials { return nil }
    if address.givesAwayDigest {
      console.warn(
        "without https the password goes as a digest: who listens on that network can guess at it "
          + "offline; use a long random one, or https")
    }
    var text = try credentialsFile.map { try InputText.text(of: $0) } ?? ask(for: kind)
    // The line feed shows that an empty last line is one: a password may be empty.
    if !text.isEmpty { text += "\n" }
    do throws(CarrierFailure) {
      _ = try CarrierCredentials(parsing: Array(text.utf8), for: kind)
    } catch {
      throw CommandFailure(.refused, error.message)
    }
    return text
  }

  private func ask(for kind: CarrierAddress.Kind) throws -> String {
    let (first, second) =
      kind == .s3 ? ("Access key: ", "Secret key: ") : ("User: ", "Password: ")
    guard let user = try answer(to: first, SecretPrompt.askOpenly),
      let password = try answer(to: second, SecretPrompt.ask)
    else {
      throw CommandFailure(
        .refused,
        "there is no terminal to ask for credentials on; give --credentials-file or "
          + "--no-credentials")
    }
    return user + "\n" + password
  }

  /// Nil if there is no terminal.
  private func answer(
    to prompt: String, _ ask: (_ prompt: String, _ limit: Int) -> SecretPrompt.Answer
  ) throws -> String? {
    switch ask(prompt, 1_024) {
    case .nobody: return nil
    case .givenUp: throw CommandFailure(.refused, "no credentials were given")
    case .typed(let bytes): return String(decoding: bytes, as: UTF8.self)
    }
  }
}
