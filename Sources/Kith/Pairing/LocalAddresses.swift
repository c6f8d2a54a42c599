internal import NIOCore

/// This host's own addresses, as another device may reach them.
enum LocalAddresses {
  static let limit = 8

  /// Hosts to name, best first: those listened on, or all of the host's if the node listens on any.
  static func hosts(listeningOn hosts: [String]) -> [String] {
    let fixed = hosts.filter { $0 != "::" && $0 != "0.0.0.0" }
    if fixed.count == hosts.count { return Array(fixed.prefix(limit)) }
    let devices = (try? System.enumerateDevices()) ?? []
    let texts = devices.compactMap { $0.address?.ipAddress }
      // Link-local addresses are useless without an interface.
      .filter { !$0.hasPrefix("fe80:") && !$0.contains("%") }
    let (loopback, global) = (texts.filter(isLoopback), texts.filter { !isLoopback($0) })
    return Array((global.sorted { $0.count < $1.count } + loopback + fixed).prefix(limit))
  }

  static func isLoopback(_ address: String) -> Bool {
    address == "::1" || address == "localhost" || address.hasPrefix("127.")
  }
}
