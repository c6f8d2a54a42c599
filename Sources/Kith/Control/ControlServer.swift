final class ControlServer: Sendable {
  init(node: Node, path: String) {}
  func run() async throws { try await Task.sleep(for: .seconds(1_000_000)) }
}
