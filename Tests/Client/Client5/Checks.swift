import Foundation

/// Counts what holds and what does not.
@MainActor final class Checks {
  private(set) var passed = 0
  private(set) var failed = 0

  func expect(
    _ condition: Bool, _ what: @autoclosure () -> String = "", line: Int = #line,
    file: String = #fileID
  ) {
    if condition {
      passed += 1
    } else {
      failed += 1
      print("\(file):\(line): does not hold \(what())")
    }
  }

  /// Lets the main thread do its work until a condition holds. The process's alarm is the limit.
  func wait(until condition: () -> Bool) {
    while !condition() { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.005)) }
  }
}

/// A list that observers fill.
final class Locked<Element>: @unchecked Sendable {
  private let lock = NSLock()
  private var elements: [Element] = []

  func append(_ element: Element) {
    lock.lock()
    defer { lock.unlock() }
    elements.append(element)
  }

  var all: [Element] {
    lock.lock()
    defer { lock.unlock() }
    return elements
  }
}
