import Foundation
import Glibc
import Kith
import KithTerminal

/// Shows the page's address to the person, or to the browser.
struct PageAddress: Sendable {
  private let options: CommonOptions
  private let opens: Bool
  /// A page that leads to the address. The browser's arguments would show the secret to other users.
  private let file: String

  init(options: CommonOptions, opens: Bool?) {
    let environment = ProcessInfo.processInfo.environment
    let isGraphical = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
    self.options = options
    self.opens = opens ?? (isGraphical && Terminal.hasTalk)
    let runtime = environment["XDG_RUNTIME_DIR", default: ""]
    file =
      (runtime.isEmpty ? NSTemporaryDirectory() : runtime) + "/kith-web-\(UUID().uuidString).html"
  }

  @Sendable func show(_ address: String) {
    let console = options.console
    if options.json {
      console.dataOrExit(Document.versioned(["address": .string(address)]).text(indented: false))
    } else {
      console.dataOrExit(address)
    }
    guard opens else {
      return console.talk("Open this address in a browser on this computer. It works once.")
    }
    do {
      let page = "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=\(address)\">\n"
      let descriptor = Glibc.open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
      try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        .write(contentsOf: Data(page.utf8))
      let browser = Process()
      browser.executableURL = URL(filePath: "/usr/bin/env")
      browser.arguments = ["xdg-open", file]
      browser.standardOutput = FileHandle.nullDevice
      browser.standardError = FileHandle.nullDevice
      try browser.run()
      // A browser in a container may not be able to read the file, and only it says so.
      console.talk("A browser opens this address; if it does not, open it by hand. It works once.")
    } catch {
      console.warn("no browser can be started; open the address by hand")
    }
  }

  @Sendable func remove() { unlink(file) }
}
