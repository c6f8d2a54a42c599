import Foundation
import Glibc
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

@Suite struct InputTextTests {
  @Test func `a file of /proc is read to its end`() throws {
    // The kernel returns at most a page of it at once, and calls its size 0.
    #expect(try InputText.text(of: "/proc/self/maps").utf8.count > 8_192)
  }

  @Test(arguments: [
    ("abc\r\n", "abc\r"), ("abc\n", "abc"), ("abc\n\n", "abc\n"), ("abc\r", "abc\r"), ("\n", ""),
    ("", ""), ("e\u{301}\n", "e\u{301}"),
  ])
  func `only the final line feed is dropped`(_ content: String, _ text: String) throws {
    let directory = try TestDirectory()
    let path = directory.child("text")
    try Data(content.utf8).write(to: URL(filePath: path))
    #expect(try InputText.text(of: path).utf8.elementsEqual(text.utf8))
  }

  @Test(arguments: [
    ("", ""), (" \r\n", ""), ("a b", "a b"), (" \u{A0}a\tb\r\n", "a\tb"), ("é \u{2028}", "é"),
  ])
  func `white space is cut off at both ends`(_ text: String, _ trimmed: String) {
    #expect(text.trimmed == trimmed)
  }
}

@Suite struct HostProgramTests {
  @Test func `a program's output and status come back`() throws {
    let mixed = try HostProgram.run(["sh", "-c", "echo ' a'; echo b >&2; exit 3"])
    #expect(mixed == (3, "a\nb"))
    #expect(try HostProgram.run(["sh", "-c", "kill -9 $$"]).status == 137)
    // More than a pipe holds.
    let long = try HostProgram.run(["sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x"])
    #expect(long == (0, String(repeating: "x", count: 200_000)))
  }

  @Test func `a program has no input, and no other file of this one`() throws {
    let (reading, writing) = try HostProgram.pipe()
    defer { for end in [reading, writing] { close(end) } }
    // Also one that other programs of this process would get.
    let shared = dup(writing)
    defer { close(shared) }
    #expect(
      try HostProgram.run(["sh", "-c", "cat; ls /proc/$$/fd | tr '\\n' ' '"]).output == "0 1 2")
  }

  @Test func `a program that is missing is named`() {
    #expect(throws: CommandFailure.self) { try HostProgram.run(["kith-no-such-program"]) }
  }
}
