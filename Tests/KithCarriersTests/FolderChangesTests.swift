internal import Foundation
import Kith
import KithTestSupport
import Testing

@testable import KithCarriers

@Suite(.timeLimit(.minutes(1)))
struct FolderChangesTests {
  private let directory: TestDirectory
  private let carrier: FolderCarrier
  private let place = freshPlace()

  init() throws {
    directory = try TestDirectory()
    carrier = FolderCarrier(path: directory.path)
  }

  private var placePath: String { directory.child(place) }

  @Test func anObjectIsAnEvent() async throws {
    try await carrier.makePlace(place)
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() != nil)
    for index in 0..<3 {
      // As another process would.
      try Data([1]).write(to: URL(filePath: "\(placePath)/a\(index)"))
      #expect(await events.next() != nil)
    }
    try await carrier.delete("a1", from: place)
    #expect(await events.next() != nil)
  }

  @Test func theStreamEndsWithItsPlace() async throws {
    try await carrier.makePlace(place)
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() != nil)
    try FileManager.default.removeItem(atPath: placePath)
    while await events.next() != nil {}
  }

  @Test func withoutAPlaceTheStreamEnds() async throws {
    var events = try #require(carrier.changes(in: place)).makeAsyncIterator()
    #expect(await events.next() == nil)
    #expect(carrier.changes(in: "../x") == nil)
  }

  @Test func aStreamThatNobodyReadsLeavesNothingOpen() async throws {
    try await carrier.makePlace(place)
    for index in 0..<20 {
      let stream = try #require(carrier.changes(in: place))
      let task = Task {
        // Half of them are dropped before the watch begins, half after.
        for await _ in stream where index.isMultiple(of: 2) { return }
      }
      if !index.isMultiple(of: 2) { task.cancel() }
      await task.value
    }
    // Other tests of this process watch other directories.
    let inode = try #require(
      FileManager.default.attributesOfItem(atPath: placePath)[.systemFileNumber] as? Int)
    let watch = "ino:\(String(inode, radix: 16)) "
    try await eventually("the watches to be closed", seconds: 10) {
      let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fdinfo")
      return !files.contains { file in
        let text = try? String(contentsOfFile: "/proc/self/fdinfo/\(file)", encoding: .utf8)
        return text?.contains(watch) == true
      }
    }
  }
}
