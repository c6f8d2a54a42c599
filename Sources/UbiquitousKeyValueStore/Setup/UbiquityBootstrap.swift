#if !canImport(Darwin)
  internal import Foundation
  public import Kith
  public import KithCore
  public import Logging

  /// Says which store a program means, in place of Apple's entitlement.
  ///
  /// ```swift
  /// try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")
  /// ```
  /// First thing in the program: the first use of the store settles the configuration. Each setting
  /// is taken from where it is said first: code, the environment, `kith.json` beside the
  /// executable. See <doc:Configuration>.
  public enum UbiquityBootstrap {
    /// What can be said about the program's store. What is nil is looked for elsewhere.
    public struct Configuration: Sendable {
      /// The store's identifier, such as `com.example.Bookmarks`; programs that name the same one
      /// share the store.
      public var storeIdentifier: String?
      /// The directory of the accounts of this user on this host, as Kith's `Accounts` keeps it;
      /// also one that `kith account create` or `kith join` made.
      public var directory: String?
      /// The hosts to listen on; empty: does not listen.
      public var hosts: [String]?
      /// The port to listen on; 0: any. Where it is taken, any other is.
      public var port: UInt16?
      /// Addresses that are dialled for ever, such as `192.0.2.1:4114`.
      public var peers: [String]?
      /// Whether to find the account's other devices on the LAN, and be found by them.
      public var discoversPeers: Bool?
      /// Asks for the passphrase of the directory's secrets; not asked where they have none. Nil:
      /// `KITH_PASSPHRASE_FILE`, the systemd credential `kith-passphrase`, `KITH_PASSPHRASE` and
      /// `passphraseFile` in `kith.json`, in this order.
      public var passphrase: PassphraseQuestion?
      /// The store's limits, which must be the same on all devices.
      public var policy = Policy.standard
      /// Whether a key beyond its limit ends the program, as on Apple's systems. Otherwise it is
      /// logged, refused, and announced as a quota violation.
      public var trapsOnInvalidKeys = false
      /// Where to log, never keys or values; from the level `notice` on, unless it is told otherwise.
      public var logger = Logger(label: "kith")

      /// Says nothing.
      public init() { logger.logLevel = .notice }
    }

    static let setup = Setup()

    /// Says which store the program means. The last call before the first use counts.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The store's identifier; nil: looked for elsewhere.
    ///   - directory: The directory; nil: looked for elsewhere, and otherwise
    ///     `$XDG_DATA_HOME/kith`, which all programs of the user share.
    ///   - adjust: Says more.
    /// - Throws: `KithError` with `invalidStoreIdentifier`, `invalidPolicy`, or
    ///   `alreadyInUse` where the store was used before: nothing has changed then.
    public static func configure(
      storeIdentifier: String? = nil, directory: String? = nil,
      _ adjust: (inout Configuration) -> Void = { _ in }
    ) throws(KithError) {
      var configuration = Configuration()
      configuration.storeIdentifier = storeIdentifier
      configuration.directory = directory
      adjust(&configuration)
      try setup.configure(configuration)
    }

    /// The accounts that the program's store is of, to sign in and out with. It settles the
    /// configuration, as the first use of the store does. They are served already: do not call
    /// their `run()`.
    ///
    /// - Throws: `KithError` where the directory cannot be used; the store is in memory then.
    public static var accounts: Accounts {
      get throws(KithError) { try Hub.shared.accounts.get() }
    }

    /// Makes an object of Apple's class on a store of the program's own, apart from the program's
    /// configuration: for tests, and for programs with several stores.
    ///
    /// - Parameter store: The store, which stays the caller's to run and to close.
    /// - Returns: The object; a further one on the same store takes a further call.
    public static func makeStore(on store: KeyValueStore) -> NSUbiquitousKeyValueStore {
      NSUbiquitousKeyValueStore(
        hub: Hub {
          Hub.Basis(backing: PlainBacking(store: store), logger: Logger(label: "kith"))
        })
    }
  }

  extension KithError.Code {
    /// The program's store is in use, so that its configuration is settled.
    public static let alreadyInUse = Self(description: "alreadyInUse")
  }
#endif
