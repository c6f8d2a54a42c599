package import Logging

extension Node {
  package struct Configuration: Sendable {
    /// The device's directory, made by ``Node/createAccount(directory:name:passphrase:showing:)``
    /// or ``Node/join(directory:name:code:address:passphrase:options:onProgress:made:confirm:)``.
    package var directory: String
    /// The hosts to listen on; `::` takes IPv4 too. If empty, the node does not listen.
    package var hosts = ["::"]
    /// The port to listen on; 0: any.
    package var port: UInt16 = 4114
    /// Peers to dial forever, such as `192.0.2.1:4114` or `name.local:4114`.
    package var peers: [String] = []
    /// Whether to find the account's other devices on the LAN, and be found by them. If all
    /// ``hosts`` are loopback addresses, this is limited to this host.
    package var discoversPeers = true
    /// Asks for the secrets' passphrase, if there is one.
    package var passphrase: PassphraseQuestion?
    package var servesControlSocket = true
    /// Logs at most at info, never keys or values.
    package var logger = Logger(label: "kith")

    /// Whether to read only membership, to change it while no node runs. Such a node has no stores,
    /// saves their memory, and must not run.
    package var readsMembershipOnly = false

    package init(directory: String) {
      self.directory = directory
    }
  }
}
