/// A promise that a run broke (`Docs/Testing.md`, "The promises").
package struct Violation: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Promise: Int, Sendable, CaseIterable {
    case convergence = 1
    case quota = 2
    case nothingLost = 3
    case wholeTransactions = 4
    case causality = 5
    case notifications = 6
    case secrecy = 7
    case bounds = 8
    case visibleAtOnce = 9
    case sameRun = 10
  }

  package var promise: Promise
  package var text: String

  package init(_ promise: Promise, _ text: String) {
    self.promise = promise
    self.text = text
  }

  package var description: String { "promise \(promise.rawValue) (\(promise)): \(text)" }
}
