import ArgumentParser
import FoundationEssentials
import Glibc
import Kith
import KithCore
import KithTerminal

struct InviteCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Show a code, and admit the device that joins with it.",
    discussion: """
      Prints eight digits for `kith join` on the other device, which finds this one on the same \
      network. They work once, for 10 minutes and 3 tries. Compare the fingerprints on both \
      devices before you say yes.

      --token prints a long token instead, for scripts: it also holds this device's addresses, \
      and any holder can ask to join. A wide terminal shows it as a QR code, too.
      """)

  @Flag(name: [.short, .long], help: "Admit any holder of the code without asking.")
  var yes = false

  @Flag(help: "Print a long token, for scripts, instead of a code.")
  var token = false

  @Flag(
    inversion: .prefixedNo,
    help: "Draw the token as a QR code. Default: on wide terminals.")
  var qr: Bool?

  @Option(
    help: ArgumentHelp(
      "Where the other device reaches this one; may be repeated. Default: this host's addresses.",
      valueName: "host"))
  var address: [String] = []

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    try Confirmation.demandPerson(
      unless: yes, " to admit any holder of the \(token ? "token" : "code")")
    let console = options.console
    let isSure = yes
    let candidate = try await options.withNode { node in
      let own = try await node.status().device.map { Fingerprint(of: $0).description } ?? ""
      return try await node.invite(addresses: address, hasCode: !token) { invitation in
        show(invitation)
      } onWrongCode: { left in
        console.talk(
          left == 0
            ? "A wrong code was tried for the third time."
            : "A wrong code was tried; \(left == 1 ? "1 try is" : "\(left) tries are") left.")
      } onJoinRequest: { candidate in
        for line in candidate.introduction("asks to join", beside: own) { console.talk(line) }
        let devices = try? await node.status().devices
        let notice = DuplicateNames.notice(
          candidate.name, candidate.fingerprint, among: devices ?? [])
        if let notice { console.talk(notice) }
        if isSure { return true }
        return await Confirmation.isGivenUnlessCancelled(
          "Does the other device show the same two? Admit it?", console)
      }
    }
    if options.json {
      let device = NodeStatus.Device(id: candidate.id, name: candidate.name)
      try console.data(Document.versioned(["joined": device.document]).text(indented: false))
    }
    console.talk("\(candidate.shownName) is in.")
  }

  /// A failed print ends the process: the invitation would be useless.
  private func show(_ invitation: OpenInvitation) {
    let console = options.console
    if options.json {
      let document = Document.versioned([
        "addresses": .strings(invitation.addresses), "code": .string(invitation.code),
        "token": .string(invitation.token),
      ])
      console.dataOrExit(document.text(indented: false))
    }
    drawToken(invitation)
    if !options.json { console.dataOrExit(invitation.code ?? invitation.token) }
    guard invitation.code != nil else {
      return console.talk(
        "On the other device: kith join -   and give it the token on standard input: other users "
          + "could see an argument   (one device, 3 tries, 10 minutes)")
    }
    console.talk("On the other device type this code into: kith join   (3 tries, 10 minutes)")
    if let address = invitation.addresses.first {
      console.talk("If it does not find this one: kith join --peer \(address)")
    }
  }

  private func drawToken(_ invitation: OpenInvitation) {
    let console = options.console
    guard qr ?? (Terminal.hasTalk && Terminal.hasOutput && !options.json && !options.quiet) else {
      return
    }
    guard let matrix = QRMatrix(caseless: invitation.token) else {
      if qr == true {
        console.warn("no QR code can be drawn; install \(QRMatrix.package) (apt install)")
      }
      return
    }
    guard qr == true || QRDrawing.columns(matrix) <= Terminal.columns else { return }
    let isColoured = Terminal.allowsColour(
      environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.hasTalk)
    console.talk("")
    for line in QRDrawing.lines(matrix, isColoured: isColoured) { console.talk(line) }
  }
}

extension PairingDevice {
  var shownName: String { Columns.printable(name, limit: 64) }

  /// The lines of `invite` and `join` before their question. The name comes last, because the other
  /// device chose it: it may read like a fingerprint.
  func introduction(_ act: String, beside own: String) -> [String] {
    [
      "A device at \(Columns.printable(address)) \(act). Its fingerprint is  \(fingerprint)",
      "This device's fingerprint is  \(own)",
      "The other one calls itself  \(shownName)",
    ]
  }
}

/// A QR code's modules, without its quiet zone. libqrencode, loaded only to draw, computes them, so
/// Kith builds and runs without it.
package struct QRMatrix: Equatable {
  static let package = "libqrencode4"

  /// The modules of a side.
  package let width: Int
  /// Line by line.
  let isDark: [Bool]

  init(width: Int, isDark: [Bool]) {
    precondition(isDark.count == width * width)
    self.width = width
    self.isDark = isDark
  }

  /// Makes the smallest code of a text whose case does not matter. Nil if the library is not
  /// installed, or the text is too long.
  package init?(caseless text: String) {
    guard let library = dlopen("libqrencode.so.4", RTLD_NOW) else { return nil }
    defer { dlclose(library) }
    guard let encode = dlsym(library, "QRcode_encodeString"),
      let free = dlsym(library, "QRcode_free")
    else { return nil }
    // Level L and 8-bit mode; capitals use the denser alphanumeric mode.
    let call = unsafeBitCast(encode, to: Encode.self)
    guard let code = call(text.uppercased(), 0, 0, 2, 0) else { return nil }
    defer { unsafeBitCast(free, to: Free.self)(code) }
    let width = Int(code.load(fromByteOffset: 4, as: Int32.self))
    let modules = code.load(fromByteOffset: 8, as: UnsafePointer<UInt8>.self)
    guard (21...177).contains(width) else { return nil }
    // The lowest bit of a module is its colour.
    self.init(width: width, isDark: (0..<width * width).map { modules[$0] & 1 == 1 })
  }

  /// Modules outside the code are light.
  package subscript(line: Int, column: Int) -> Bool {
    guard (0..<width).contains(line), (0..<width).contains(column) else { return false }
    return isDark[line * width + column]
  }

  private typealias Encode =
    @convention(c) (UnsafePointer<CChar>, Int32, Int32, Int32, Int32) -> UnsafeMutableRawPointer?
  private typealias Free = @convention(c) (UnsafeMutableRawPointer) -> Void
}

/// Draws two modules a character, one above the other.
enum QRDrawing {
  /// Light modules around the code, which scanners need (ISO/IEC 18004, 9.1).
  static let quietZone = 4

  static func columns(_ matrix: QRMatrix) -> Int { matrix.width + 2 * quietZone }

  /// Black on white in any terminal. Without colours the text draws the light modules, for light
  /// text on dark.
  static func lines(_ matrix: QRMatrix, isColoured: Bool) -> [String] {
    let range = -quietZone..<matrix.width + quietZone
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { line in
      let text = String(
        range.map { column -> Character in
          let upper = matrix[line, column] == isColoured
          let lower = matrix[line + 1, column] == isColoured
          return upper ? (lower ? "█" : "▀") : (lower ? "▄" : " ")
        })
      return isColoured ? "\u{1b}[38;5;16;48;5;231m\(text)\u{1b}[0m" : text
    }
  }
}
