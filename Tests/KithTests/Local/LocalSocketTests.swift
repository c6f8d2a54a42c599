import Foundation
import Glibc
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// The users that can reach the control socket, and the effects of binding it on the process.
@Suite(.timeLimit(.minutes(5)))
struct LocalSocketTests {
  private static func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test(arguments: [0o000, 0o022, 0o077, 0o777])
  func `nobody else can connect, whatever the process's mask is`(mask: Int) async throws {
    let directory = try TestDirectory()
    let path = directory.child("control")
    try await onThread {
      // From here on this thread has a mask of its own, which threads that it starts would share.
      try Self.takeOwnMask()
      let before = umask(mode_t(mask))
      let listening = Result { try LocalSocket.listen(at: path) }
      let after = umask(before)
      close(try listening.get())
      #expect(after == mode_t(mask))
      #expect(try Self.mode(path) == 0o600)
    }
  }

  /// Gives this thread a mask of its own: unshare(2) with CLONE_FS, which Glibc's module leaves out.
  private static func takeOwnMask() throws {
    typealias Call = @convention(c) (Int32) -> Int32
    let unshare = unsafeBitCast(try #require(dlsym(nil, "unshare")), to: Call.self)
    try #require(unshare(0x200) == 0)
  }

  /// The mask is all threads': another one that makes a file at that moment would make it with ours.
  @Test func `binding leaves the process's mask alone`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("control")
    let isOver = Mutex(false)
    let seen = Mutex<Set<String>>([])
    async let looking: Void = onThread {
      while !isOver.withLock({ $0 }) {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        if let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Umask:") }) {
          _ = seen.withLock { $0.insert(String(line)) }
        }
      }
    }
    try await onThread {
      defer { isOver.withLock { $0 = true } }
      try eventuallyBlocking("the mask to be seen") { seen.withLock { !$0.isEmpty } }
      for _ in 0..<5_000 { close(try LocalSocket.listen(at: path)) }
    }
    try await looking
    #expect(seen.withLock { $0.count } == 1, "\(seen.withLock { $0 })")
  }

  /// A second account's directory is 49 bytes longer than the first's: no command reached its node.
  @Test func `a path longer than a socket's address is served all the same`() throws {
    let directory = try TestDirectory()
    let deep = directory.child(String(repeating: "d", count: 120))
    try FileManager.default.createDirectory(atPath: deep, withIntermediateDirectories: false)
    let path = deep + "/control"
    let listener = try LocalSocket.listen(at: path)
    #expect(try Self.mode(path) == 0o600)
    close(try LocalSocket.connect(to: path))
    close(listener)
    for gone in [path, directory.child(String(repeating: "e", count: 120)) + "/control"] {
      let error = #expect(throws: KithError.self) { try LocalSocket.connect(to: gone) }
      #expect(error?.code == .notRunning, "\(gone)")
    }
    // No directory can have such a name.
    let endless = directory.child(String(repeating: "e", count: 300)) + "/control"
    #expect(throws: KithError.self) { try LocalSocket.listen(at: endless) }
    #expect(throws: KithError.self) { try LocalSocket.connect(to: endless) }
  }

  /// Says hello, and reads until the answer or the end.
  private static func ask(_ path: String, as user: UInt32?) throws -> LocalReply? {
    if let user { try Self.become(user) }
    // Threads that this one starts would be his, too.
    defer { if user != nil { try? Self.become(0) } }
    let end = try RawEnd(path: path)
    try? end.send(1, .hello(version: LocalLimits.version, attaches: false))
    return try end.next(LocalReply.self)
  }

  /// Makes this thread, and no other, another user's: the system call itself acts on one thread.
  private static func become(_ user: UInt32) throws {
    #if arch(x86_64)
      let number = 117
    #elseif arch(arm64)
      let number = 147
    #endif
    typealias Call = @convention(c) (Int, Int, Int, Int) -> Int
    let call = unsafeBitCast(try #require(dlsym(nil, "syscall")), to: Call.self)
    // setresuid(2); the real and the saved one stay.
    try #require(call(number, -1, Int(user), -1) == 0)
  }

  #if arch(x86_64) || arch(arm64)
    @Test(.enabled(if: geteuid() == 0, "only root can become another user"))
    func `another user gets no answer, also where modes let him in`() async throws {
      let served = try await Served()
      try await running(served.node) {
        try await eventually { (try? await served.client.status()) != nil }
        let path = served.path + "/control"
        for directory in [served.directory.path, served.path] { chmod(directory, 0o711) }
        chmod(path, 0o666)
        try await onThread {
          let own = try Self.ask(path, as: nil)
          guard case .answer(.hello)? = own?.content else { throw TimedOut() }
          #expect(try Self.ask(path, as: 65_534) == nil)
        }
        // The node goes on for its own user.
        _ = try await served.client.status()
      }
      for directory in [served.directory.path, served.path] { chmod(directory, 0o700) }
      try served.node.close()
    }
  #endif
}
