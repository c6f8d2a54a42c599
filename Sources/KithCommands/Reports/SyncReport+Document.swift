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
      "complete": .strings(status.names(of: complete)),
      "incomplete": .strings(status.names(of: incomplete)),
      "unpublished": .bool(hasUnpublishedWrites), "store": .string(store),
    ])
  }
}

extension NodeStatus {
  func names(of devices: [DeviceID]) -> [String] {
    devices.map { id in self.devices.first { $0.id == id }?.name ?? String(id.hex.prefix(16)) }
  }
}
