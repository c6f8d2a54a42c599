internal import Foundation

/// A directory that goes with the test that made it.
package final class TestDirectory: Sendable {
  package let path: String

  package init() throws {
    path = FileManager.default.temporaryDirectory.path + "/kith-\(UUID().uuidString.prefix(13))"
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  package func child(_ name: String) -> String { path + "/" + name }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}
