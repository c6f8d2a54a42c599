import Foundation
import Glibc
import KithTerminal

/// The program `kith-web`: this tool with the page linked in.
enum PageProgram {
  /// Returns only if the program cannot be started.
  static func replaceThisOne() -> CommandFailure {
    let name = "kith-web"
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = URL(filePath: own).deletingLastPathComponent().appending(path: name).path
    let arguments = [name] + CommandLine.arguments.dropFirst()
    let words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    // Without /proc it is not known where this program is.
    if !own.isEmpty { execv(beside, words) }
    execvp(name, words)
    return CommandFailure(
      .failure,
      "the page is in the program \(name), which is neither beside this one nor in PATH; from the "
        + "sources: swift build --traits Web --product \(name)")
  }
}
