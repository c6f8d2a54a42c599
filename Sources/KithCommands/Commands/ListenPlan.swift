import Kith
import KithTerminal

struct ListenPlan: Equatable {
  static let defaultPort: UInt16 = 4114

  /// `::` includes IPv4.
  var hosts: [String]
  /// 0: any.
  var port: UInt16

  /// All ports, including that of `--port`, must be the same.
  init(_ texts: [String], port: UInt16?) throws(CommandFailure) {
    let places = try texts.map(Self.parse)
    let hosts = places.map(\.host)
    let ports = [port].compactMap(\.self) + places.compactMap(\.port)
    let first = ports.first ?? Self.defaultPort
    guard ports.allSatisfy({ $0 == first }) else {
      throw CommandFailure(
        .usage, "a node listens on one port; give the same to every --listen, or --port once")
    }
    self.hosts = hosts.isEmpty ? ["::"] : hosts
    self.port = first
  }

  /// Reads `192.0.2.1`, `192.0.2.1:4114`, `[::1]:4114`, `::1` or `name:0`.
  private static func parse(_ text: String) throws(CommandFailure) -> (
    host: String, port: UInt16?
  ) {
    let wrong = CommandFailure(
      .usage, "'\(text)' is no place to listen on; write 0.0.0.0, 192.0.2.1:4114 or [::1]:4114")
    var host = Substring(text)
    var rest: Substring = ""
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { throw wrong }
      host = text[text.index(after: text.startIndex)..<end]
      rest = text[text.index(after: end)...]
    } else if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
      host = text[..<colon]
      rest = text[colon...]
    }
    guard !host.isEmpty else { throw wrong }
    if rest.isEmpty { return (String(host), nil) }
    guard rest.first == ":", let port = UInt16(rest.dropFirst()) else { throw wrong }
    return (String(host), port)
  }
}
