internal import Foundation

/// Something that a test waited for did not come.
package struct NotInTime: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}

/// Waits until something holds, looking every few milliseconds. The time is long enough for a host
/// that is busy with other things.
///
/// - Parameters:
///   - what: The subject of the wait, as the error names it.
///   - seconds: How long to wait at most.
///   - milliseconds: How often to look.
///   - isolation: The caller's.
///   - file: The caller's.
///   - line: The caller's.
///   - holds: Whether it holds.
/// - Throws: ``NotInTime``, or what `holds` throws.
package func eventually(
  _ what: String = "a condition", seconds: Double = 60, every milliseconds: Int = 2,
  isolation: isolated (any Actor)? = #isolation, file: String = #fileID, line: Int = #line,
  _ holds: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + .milliseconds(Int(seconds * 1_000))
  while try await !holds() {
    guard ContinuousClock.now < end else {
      throw NotInTime("waited \(seconds) s for \(what), at \(file):\(line)")
    }
    try await Task.sleep(for: .milliseconds(milliseconds))
  }
}

/// Waits as `eventually` does, and blocks its thread: for code on a thread of its own.
///
/// - Parameters:
///   - what: The subject of the wait, as the error names it.
///   - seconds: How long to wait at most.
///   - milliseconds: How often to look.
///   - file: The caller's.
///   - line: The caller's.
///   - holds: Whether it holds.
/// - Throws: ``NotInTime``, or what `holds` throws.
@available(*, noasync, message: "use eventually")
package func eventuallyBlocking(
  _ what: String = "a condition", seconds: Double = 60, every milliseconds: Int = 2,
  file: String = #fileID, line: Int = #line, _ holds: () throws -> Bool
) throws {
  let end = ContinuousClock.now + .milliseconds(Int(seconds * 1_000))
  while try !holds() {
    guard ContinuousClock.now < end else {
      throw NotInTime("waited \(seconds) s for \(what), at \(file):\(line)")
    }
    Thread.sleep(forTimeInterval: Double(milliseconds) / 1_000)
  }
}
