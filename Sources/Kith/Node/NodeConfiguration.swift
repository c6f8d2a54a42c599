package import Logging

extension Node {
  /// How a node is opened.
  package struct Configuration: Sendable {
    /// The device's directory, which ``Node/createAccount(directory:name:passphrase:showing:)`` or
    /// ``Node/join(directory:name:token:address:passphrase:onMeeting:onProgress:)`` made.
    package var directory: String
    /// The hosts to listen on while the node runs; `::` takes IPv4 too. Empty: does not listen.
    package var hosts = ["::"]
    /// The port to listen on; 0: any.
    package var port: UInt16 = 4114
    /// Addresses that are dialled for ever, such as `192.0.2.1:4114` or `name.local:4114`.
    package var peers: [String] = []
    /// Whether to find the account's other devices on the LAN, and be found by them. If all
    /// ``hosts`` are loopback addresses, this works on this host only.
    package var discoversPeers = true
    /// Asks for the passphrase of the directory's secrets; not called if they have none.
    package var passphrase: PassphraseQuestion?
    /// Whether to serve the control socket, for the command line, while the node runs.
    package var servesControlSocket = true
    /// The log: at most at info, never keys or values.
    package var logger = Logger(label: "kith")

    /// Whether to read membership alone. The node then has no stores and needs no memory for them.
    /// For a change of membership while no node runs; such a node is not run.
    package var readsMembershipOnly = false

    /// The defaults, for a directory.
    package init(directory: String) {
      self.directory = directory
    }
  }
}
