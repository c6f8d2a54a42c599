@testable import KithCrypto

@testable import KithCore

/// Both sides of a code's exchange, with a party between them that does as the input says.
///
/// If nothing was altered and the codes are equal, both agree. If anything was altered, the side
/// that received it does not agree. No side can be asked twice.
enum CodeExchangeRun {
  static let codes: [PairingCode] = {
    var entropy = SeededEntropy(seed: 4115)
    return [PairingCode(random: &entropy), PairingCode(random: &entropy)]
  }()

  static func run(_ input: inout FuzzInput) {
    let isOneCode = input.bool()
    var entropy = SeededEntropy(seed: 1)
    var inviter = CodeInviter(code: codes[0])
    var joiner = CodeJoiner(code: codes[isOneCode ? 0 : 1], entropy: &entropy)
    var meddler = Meddler()
    var isSound = isOneCode

    func pass(_ message: [UInt8]) -> [UInt8] {
      let arrived = meddler.pass(message, &input)
      if arrived != message { isSound = false }
      return arrived
    }

    guard let offer = try? inviter.offer(to: pass(joiner.hello), entropy: &entropy) else {
      return require(!isSound, "a sound hello was refused")
    }
    require((try? inviter.offer(to: joiner.hello, entropy: &entropy)) == nil, "offered twice")
    guard let proof = try? joiner.prove(to: pass(offer), entropy: &entropy) else {
      return require(!isSound, "a sound offer was refused")
    }
    require((try? joiner.prove(to: offer, entropy: &entropy)) == nil, "proved twice")
    let arrived = pass(proof)
    let theirs = Agreed { () throws(CodeExchangeError) in try inviter.confirm(arrived) }
    require((theirs != nil) == isSound, "a proof was judged wrongly")
    require(
      Agreed { () throws(CodeExchangeError) in try inviter.confirm(proof) } == nil,
      "a second guess was taken")
    // Without the inviter's word the input makes one up.
    let confirmation =
      theirs?.agreement.confirmation ?? input.take(CodeExchange.confirmationBytes)
    let received = pass(confirmation)
    let ours = Agreed { () throws(CodeExchangeError) in try joiner.finish(received) }
    require((ours != nil) == isSound, "a confirmation was judged wrongly")
    guard let theirs, let ours else { return }
    require(
      ours.agreement.prologue == theirs.agreement.prologue
        && ours.agreement.presharedKey.isSame(as: theirs.agreement.presharedKey),
      "both agreed, and not on the same")
  }

  /// Nothing altered, with the right code and a wrong one; and each way of meddling with each message.
  static var seeds: [(name: String, bytes: [UInt8])] {
    var seeds = [
      ("exchange", bytes(code: 1, meddling: [11, 11, 11, 11])),
      ("exchange with a wrong code", bytes(code: 0, meddling: [11, 11, 11, 11])),
    ]
    for way in 0..<7 {
      for message in 0..<4 {
        var ways = [11, 11, 11, 11]
        ways[message] = way
        seeds.append(("exchange meddled \(way) \(message)", bytes(code: 1, meddling: ways)))
      }
    }
    return seeds
  }

  private static func bytes(code: Int, meddling ways: [Int]) -> [UInt8] {
    var output = FuzzOutput()
    output.bytes(0, code)
    for way in ways {
      output.byte(way)
      switch way {
      case 0, 2: output.block([1, 9, 9])
      case 1: output.bytes(0, 16)
      case 3, 6: output.byte(0)
      case 4, 5: output.bytes(0, 20, 1)
      default: break
      }
    }
    return output.bytes
  }
}

/// One side's agreement, by reference.
private final class Agreed {
  let agreement: CodeAgreement

  /// Nil if the step failed.
  init?(_ step: () throws(CodeExchangeError) -> CodeAgreement) {
    do {
      agreement = try step()
    } catch {
      return nil
    }
  }
}
