import KithCrypto

/// A systemd unit that runs a node. `Examples/systemd` has both, with these defaults.
struct ServiceUnit {
  /// Begins the last line of a written file, which tells whether somebody changed it.
  private static let mark = "# Written by kith service install. Of the lines above: "
  static let hostDirectories = "/var/lib/"

  /// Under the host's service manager, not a person's.
  let isOfHost: Bool
  var program = "/usr/local/bin/kith"
  /// Empty: the person's usual one. The host's is below ``hostDirectories``.
  var directory: String

  init(isOfHost: Bool) {
    self.isOfHost = isOfHost
    directory = isOfHost ? Self.hostDirectories + "kith" : ""
  }

  var name: String { isOfHost ? "kith-host.service" : "kith.service" }

  var command: String { Self.word(program) + arguments }

  private var arguments: String {
    " run --quiet" + (directory.isEmpty ? "" : " --directory \(Self.word(directory))")
  }

  /// Whether a unit's file runs the node of this unit's directory, by whatever program.
  func hasSameNode(as file: String) -> Bool {
    file.split(separator: "\n")
      .contains { $0.hasPrefix("ExecStart=") && $0.hasSuffix(arguments) }
  }

  /// The commands before the host's installation, as they are typed.
  var preparation: String {
    text.split(separator: "\n").dropFirst(2).prefix(3)
      .map { "  " + $0.drop { "# ".contains($0) } }.joined(separator: "\n")
  }

  private var stateDirectory: Substring { directory.dropFirst(Self.hostDirectories.count) }

  /// As systemd.service(5), "Command lines", wants it.
  private static func word(_ text: String) -> String {
    var word = text
    for (character, escaped) in [("\\", "\\\\"), ("\"", "\\\""), ("%", "%%"), ("$", "$$")] {
      word = word.replacing(character, with: escaped)
    }
    let isPlain = word.allSatisfy { $0.isLetter || $0.isNumber || "/._-+:@%$".contains($0) }
    return isPlain ? word : "\"\(word)\""
  }

  // MARK: The file

  var file: String { text + Self.lastLine(of: text) }

  static func isUnchanged(_ file: String) -> Bool {
    guard let last = file.ranges(of: mark).last else { return false }
    let text = String(file[..<last.lowerBound])
    return file == text + lastLine(of: text)
  }

  private static func lastLine(of text: String) -> String {
    "\(mark)\(Blake2b.digest256(Array(text.utf8)).hex.prefix(16))\n"
  }

  var text: String { isOfHost ? textOfHost : textOfPerson }

  /// The lines of both: restarting, and limits on what the node may do.
  private static let shared = """
    Restart=on-failure
    RestartSec=5
    # A second signal would end it at once; it needs a moment to make its last writes durable.
    TimeoutStopSec=20
    # Secrets: never in a core dump, nor in swap.
    LimitCORE=0
    LimitMEMLOCK=64M
    # Far above what a node takes, hostile members and carriers included; a passphrase takes 256 MiB.
    MemoryMax=1G
    TasksMax=512
    NoNewPrivileges=yes
    LockPersonality=yes
    MemoryDenyWriteExecute=yes
    RestrictRealtime=yes
    RestrictSUIDSGID=yes
    # AF_NETLINK: the host's addresses.
    RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
    SystemCallArchitectures=native
    # Not ProtectClock=: whether the clock is synchronised is asked with a call that could also set it.
    SystemCallFilter=@system-service adjtimex clock_adjtime
    SystemCallErrorNumber=EPERM
    UMask=0077
    """

  private var textOfPerson: String {
    """
    # A node for one person, under that person's own service manager.
    #
    #   kith service install                    # writes, enables and starts it
    #   loginctl enable-linger                  # to run it while nobody is logged in
    #   systemctl --user edit kith              # to change it
    #
    # Under a passphrase (kith account lock), one of:
    #   systemd-creds --user encrypt --name=kith-passphrase - ~/.config/kith-passphrase.cred
    #     and: LoadCredentialEncrypted=kith-passphrase:%h/.config/kith-passphrase.cred
    #   LoadCredential=kith-passphrase:%h/.config/kith-passphrase    (a file of mode 0600)
    [Unit]
    Description=Kith: this person's key-value store on all devices

    [Service]
    Type=notify
    ExecStart=\(command)
    \(Self.shared)

    [Install]
    WantedBy=default.target

    """
  }

  private var textOfHost: String {
    """
    # A node of the host's own, such as on a server that is always there for the others.
    #
    #   useradd --system --home-dir \(directory) --shell /usr/sbin/nologin kith
    #   install -d -o kith -g kith -m 0700 \(directory)
    #   runuser -u kith -- kith join --directory \(directory)
    #   kith service install --system           # writes, enables and starts it
    #   systemctl edit kith-host                # to change it
    #
    # A folder as a carrier needs in it: ReadWritePaths=/srv/kith
    #
    # Its commands: runuser -u kith -- kith status --directory \(directory)
    #
    # Under a passphrase (kith account lock), one of:
    #   systemd-creds encrypt --name=kith-passphrase - /etc/credstore.encrypted/kith-passphrase
    #     and: LoadCredentialEncrypted=kith-passphrase
    #   LoadCredential=kith-passphrase:/etc/kith/passphrase          (root's, of mode 0600)
    [Unit]
    Description=Kith: a key-value store on all devices of a person
    After=network-online.target time-sync.target
    Wants=network-online.target

    [Service]
    Type=notify
    User=kith
    Group=kith
    # The directory belongs to one user for ever, which DynamicUser= would change.
    StateDirectory=\(stateDirectory)
    StateDirectoryMode=0700
    ExecStart=\(command)
    \(Self.shared)
    # Only for the host's service manager: these need root.
    CapabilityBoundingSet=
    ProtectSystem=strict
    ProtectHome=yes
    PrivateTmp=yes
    PrivateDevices=yes
    ProtectHostname=yes
    ProtectKernelLogs=yes
    ProtectKernelModules=yes
    ProtectKernelTunables=yes
    ProtectControlGroups=yes
    ProtectProc=invisible
    RestrictNamespaces=yes

    [Install]
    WantedBy=multi-user.target

    """
  }
}
