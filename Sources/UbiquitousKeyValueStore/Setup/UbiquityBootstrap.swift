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
  /// Call it first in the program: the first use of the store fixes the configuration. Each setting
  /// comes from the first source that has it: code, the environment, `kith.json` beside the
  /// executable. See <doc:Configuration>.
  public enum UbiquityBootstrap {
    /// The settings of the program's store; those of nil come from the other sources.
    public struct Configuration: Sendable {
      /// The store's identifier, such as `com.example.Bookmarks`.
      ///
      /// Programs with the same identifier share the store.
      public var storeIdentifier: String?
      /// The directory of this user's accounts, which `kith account create` or `kith join` may have
      /// made.
      public var directory: String?
      /// The hosts to listen on; empty: does not listen.
      public var hosts: [String]?
      /// The port to listen on, or any other if it is taken; 0: any.
      public var port: UInt16?
      /// Addresses that are dialled for ever, such as `192.0.2.1:4114`.
      public var peers: [String]?
      /// Whether to find the account's devices on the LAN, and be found by them.
      public var discoversPeers: Bool?
      /// Returns the passphrase of the directory's secrets; called only if they have one.
      ///
      /// Nil uses `KITH_PASSPHRASE_FILE`, the systemd credential `kith-passphrase`,
      /// `KITH_PASSPHRASE` or `passphraseFile` in `kith.json`, in this order.
      public var passphrase: PassphraseQuestion?
      /// The store's limits, which must be the same on all devices.
      public var policy = Policy.standard
      /// Whether an invalid key ends the program, as on Apple's systems.
      ///
      /// Otherwise the write is logged, refused, and announced as a quota violation.
      public var trapsOnInvalidKeys = false
      /// The log, by default at level `notice`; it never holds keys or values.
      public var logger = Logger(label: "kith")

      /// Makes a configuration without settings.
      public init() { logger.logLevel = .notice }
    }

    static let setup = Setup()

    /// Configures the program's store; the last call before the first use counts.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The store's identifier; nil: from the other sources.
    ///   - directory: The directory; nil: from the other sources, by default `$XDG_DATA_HOME/kith`,
    ///     which all programs of the user share.
    ///   - adjust: Changes further settings.
    /// - Throws: `KithError` with `invalidStoreIdentifier`, `invalidPolicy`, or, after the store's
    ///   first use, `alreadyInUse`; then nothing has changed.
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
    /// They are served already: do not call their `run()`. The first use fixes the configuration.
    ///
    /// ```swift
    /// try await UbiquityBootstrap.accounts.signOut()
    /// ```
    ///
    /// - Throws: `KithError` if the directory cannot be used; the store is in memory then.
    public static var accounts: Accounts {
      get throws(KithError) { try Hub.shared.accounts.get() }
    }

    /// Makes an object of Apple's class on any store, for tests and for programs with several
    /// stores.
    ///
    /// The program's configuration does not affect it.
    ///
    /// - Parameter store: The store. The caller still runs and closes it.
    /// - Returns: A new object for each call.
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
