import Foundation
import Glibc
import Synchronization
import Testing

@testable import Kith

/// Who can reach the control socket, and what binding it does to the process.
@Suite(.timeLimit(.minutes(5)))
struct ControlSocketTests {
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
      let listening = Result { try ControlSocket.listen(at: path) }
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
      while seen.withLock({ $0.isEmpty }) { usleep(1_000) }
      for _ in 0..<5_000 { close(try ControlSocket.listen(at: path)) }
    }
    try await looking
    #expect(seen.withLock { $0.count } == 1, "\(seen.withLock { $0 })")
  }

  /// Sends a request as it stands, and reads until the connection ends.
  private static func ask(_ path: String, as user: UInt32?) throws -> (bytes: [UInt8], code: Int32)
  {
    if let user { try Self.become(user) }
    // Threads that this one starts would be his, too.
    defer { if user != nil { try? Self.become(0) } }
    guard let descriptor = try ControlSocket.connect(to: path) else { return ([], EAGAIN) }
    defer { close(descriptor) }
    let request = Array(#"{"version":1,"id":1,"operation":"version"}"#.utf8) + [10]
    _ = send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
    var bytes: [UInt8] = []
    while true {
      var waited = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&waited, 1, 60_000) > 0 else { return (bytes, ETIMEDOUT) }
      var buffer = [UInt8](repeating: 0, count: 4_096)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { return (bytes, count == 0 ? 0 : errno) }
      bytes += buffer.prefix(count)
      // The node waits for the next request.
      if bytes.last == 10 { return (bytes, 0) }
    }
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
        try await until { (try? await served.client.version()) == 1 }
        let path = served.path + "/control"
        for directory in [served.directory.path, served.path] { chmod(directory, 0o711) }
        chmod(path, 0o666)
        try await onThread {
          let own = try Self.ask(path, as: nil)
          #expect(String(decoding: own.bytes, as: UTF8.self).contains(#""version":1"#))
          let other = try Self.ask(path, as: 65_534)
          #expect(other.bytes.isEmpty && other.code != ETIMEDOUT, "\(other)")
        }
        // The node goes on for its own user.
        #expect(try await served.client.version() == 1)
      }
      for directory in [served.directory.path, served.path] { chmod(directory, 0o700) }
      try served.node.close()
    }
  #endif

  /// Each silent connection takes a place until its time is over.
  @Test func `a connection too many is told so at once, and closed`() async throws {
    let served = try await Served()
    try await running(served.node) {
      try await until { (try? await served.client.version()) == 1 }
      let path = served.path + "/control"
      try await onThread {
        var silent: [Int32] = []
        defer { for descriptor in silent { close(descriptor) } }
        while silent.count < ControlLimits.connections * 2 {
          guard let descriptor = try ControlSocket.connect(to: path) else {
            usleep(1_000)
            continue
          }
          silent.append(descriptor)
        }
        // All but those that have a place are told, without having sent a byte.
        var told = 0
        for descriptor in silent {
          var bytes: [UInt8] = []
          var buffer = [UInt8](repeating: 0, count: 4_096)
          _ = fcntl(descriptor, F_SETFL, 0)
          while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            bytes += buffer.prefix(count)
          }
          let text = String(decoding: bytes, as: UTF8.self)
          if text.contains("commands are under way already") { told += 1 }
        }
        #expect(told == ControlLimits.connections)
      }
    }
    try served.node.close()
  }
}
