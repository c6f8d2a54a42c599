package import Kith
import KithCore

extension SyncReport {
  package func document(store: String, status: NodeStatus) -> Document {
    Document.versioned([
      "carriers": .list(
        carriers.map {
          .object([
            "location": .string($0.location), "sinceMilliseconds": .int($0.sinceMilliseconds),
          ])
        }),
      "complete": .strings(complete.map(status.plainName)),
      "incomplete": .strings(incomplete.map(status.plainName)),
      "unpublished": .bool(hasUnpublishedWrites), "store": .string(store),
    ])
  }
}
