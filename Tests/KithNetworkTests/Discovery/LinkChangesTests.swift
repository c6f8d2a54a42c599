import Foundation
import Glibc
import KithTestSupport
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import KithNetwork

@Suite(.timeLimit(.minutes(2)))
struct LinkChangesTests {
  /// Runs a body on a thread in a network namespace of its own, where also its children are: what they
  /// change leaves the host alone. The namespace ends with the thread.
  private static func inNamespace<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) throws -> Value {
    let result = Mutex<Result<Value, any Error>?>(nil)
    let isDone = DispatchSemaphore(value: 0)
    Thread {
      let outcome = Result {
        // Glibc's module leaves out unshare(2) and CLONE_NEWNET.
        typealias Call = @convention(c) (CInt) -> CInt
        let unshare = unsafeBitCast(try #require(dlsym(nil, "unshare")), to: Call.self)
        guard unshare(0x4000_0000) == 0 else { throw NotInTime("unshare: \(errno)") }
        return try body()
      }
      result.withLock { $0 = outcome }
      isDone.signal()
    }.start()
    isDone.wait()
    return try #require(result.withLock { $0 }).get()
  }

  /// Without Foundation's `Process`: that waits in a run loop, which tasks can keep from running.
  private static func ip(_ arguments: [String]) throws {
    var child = pid_t()
    var words = (["ip"] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var status: CInt = 0
    guard posix_spawnp(&child, "ip", nil, nil, &words, environ) == 0,
      waitpid(child, &status, 0) == child, status == 0
    else { throw NotInTime("ip \(arguments.joined(separator: " ")): \(status)") }
  }

  /// Whether this user and host may make a namespace with a cable; prints the reason otherwise.
  private static let isPossible: Bool = {
    do {
      try inNamespace { try ip(["link", "add", "one", "type", "veth", "peer", "name", "two"]) }
      return true
    } catch {
      print("this host refuses: \(error)")
      return false
    }
  }()

  @Test(.enabled(if: isPossible, "network namespaces with a cable cannot be made here"))
  func `a new link, its start, an address and its end are each heard of`() throws {
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    try Self.inNamespace {
      let descriptor = try #require(LinkChanges.open())
      let heard = Mutex(0)
      let channel = try eventLoop.flatSubmit {
        LinkChanges.read(descriptor, on: eventLoop) { heard.withLock { $0 += 1 } }
      }.wait()
      for change in [
        ["link", "add", "one", "type", "veth", "peer", "name", "two"],
        ["link", "set", "one", "up"], ["addr", "add", "192.0.2.1/24", "dev", "one"],
        ["addr", "add", "fd00::1/64", "dev", "one", "nodad"], ["link", "del", "one"],
      ] {
        let before = heard.withLock(\.self)
        try Self.ip(change)
        try eventuallyBlocking("\(change) to be heard") { heard.withLock(\.self) > before }
      }
      try channel.close().wait()
    }
  }

  @Test func `a descriptor of which no channel can be made is closed`() throws {
    let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    // NIO takes no files.
    let descriptor = open("/proc/self/exe", O_RDONLY)
    var (file, after) = (stat(), stat())
    try #require(fstat(descriptor, &file) == 0)
    let reading = eventLoop.flatSubmit { LinkChanges.read(descriptor, on: eventLoop) {} }
    #expect(throws: (any Error).self) { try reading.wait() }
    // Another thread may have got the number.
    #expect(fstat(descriptor, &after) != 0 || after.st_ino != file.st_ino)
  }
}
