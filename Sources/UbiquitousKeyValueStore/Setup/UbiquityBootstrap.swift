#if !canImport(Darwin)
  internal import Foundation
  public import Kith
  public import KithCore
  public import Logging

  /// Names the store of a program, in place of Apple's entitlement.
  ///
  /// ```swift
  /// try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")
  /// ```
  /// Call it first in the program: the first use of the store fixes the configuration. For each
  /// setting the first source with a value is used: code, the environment, `kith.json` beside the
  /// executable. See <doc:Configuration>.
  public enum UbiquityBootstrap {
    /// The settings of the program's store. A setting of nil is read from the other sources.
    public struct Configuration: Sendable {
      /// The store's identifier, such as `com.example.Bookmarks`.
      ///
      /// Programs with the same identifier share the store.
      public var storeIdentifier: String?
      /// The directory of this user's accounts on this host, as Kith's `Accounts` keeps it.
      ///
      /// It may have been made by `kith account create` or `kith join`.
      public var directory: String?
      /// The hosts to listen on; an empty list disables listening.
      public var hosts: [String]?
      /// The port to listen on; 0 selects any. If it is taken, any other port is used.
      public var port: UInt16?
      /// Addresses that are dialled continually, such as `192.0.2.1:4114`.
      public var peers: [String]?
      /// Whether to find the account's other devices on the LAN, and to be found by them.
      public var discoversPeers: Bool?
      /// Returns the passphrase of the directory's secrets.
      ///
      /// It is called only if they have one. Nil uses `KITH_PASSPHRASE_FILE`, the systemd
      /// credential `kith-passphrase`, `KITH_PASSPHRASE` or `passphraseFile` in `kith.json`, in
      /// this order.
      public var passphrase: PassphraseQuestion?
      /// The store's limits, which must be the same on all devices.
      public var policy = Policy.standard
      /// Whether an invalid key ends the program, as on Apple's systems.
      ///
      /// Otherwise the write is logged, refused, and announced as a quota violation.
      public var trapsOnInvalidKeys = false
      /// The log, which never holds keys or values.
      ///
      /// Its level is `notice`, unless the program changes it.
      public var logger = Logger(label: "kith")

      /// Makes a configuration without settings.
      public init() { logger.logLevel = .notice }
    }

    static let setup = Setup()

    /// Configures the program's store. The last call before the first use counts.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The store's identifier; nil: read from the other sources.
    ///   - directory: The directory; nil: read from the other sources, by default
    ///     `$XDG_DATA_HOME/kith`, which all programs of the user share.
    ///   - adjust: Changes further settings.
    /// - Throws: `KithError` with `invalidStoreIdentifier`, `invalidPolicy`, or, if the store was
    ///   used before, `alreadyInUse`; then nothing has changed.
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

    /// The accounts of the program's store, for signing in and out.
    ///
    /// They are served already: do not call their `run()`. The first use fixes the configuration,
    /// as the first use of the store does.
    ///
    /// ```swift
    /// try await UbiquityBootstrap.accounts.signOut()
    /// ```
    ///
    /// - Throws: `KithError` if the directory cannot be used; the store is in memory then.
    public static var accounts: Accounts {
      get throws(KithError) { try Hub.shared.accounts.get() }
    }

    /// Makes an object of Apple's class on a store of the program's own.
    ///
    /// It is independent of the program's configuration: for tests, and for programs with
    /// several stores.
    ///
    /// - Parameter store: The store. The caller still runs and closes it.
    /// - Returns: The object. Each call makes another one.
    public static func makeStore(on store: KeyValueStore) -> NSUbiquitousKeyValueStore {
      NSUbiquitousKeyValueStore(
        hub: Hub {
          Hub.Basis(backing: PlainBacking(store: store), logger: Logger(label: "kith"))
        })
    }
  }

  extension KithError.Code {
    /// The program's store is in use, so its configuration is fixed.
    public static let alreadyInUse = Self(description: "alreadyInUse")
  }
#endif
