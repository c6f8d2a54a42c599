package import Kith
package import ServiceLifecycle
import Synchronization

/// The accounts and settings of the page of `kith web`.
package struct WebPage: Sendable {
  package typealias Maker = @Sendable (WebPage) -> any Service
  /// Makes the server of the page; nil in the program without it. Set once, before the command runs:
  /// a task-local value around an asynchronous `main` crashes in optimized builds of Swift 6.3.
  static let maker = Mutex<Maker?>(nil)

  package let accounts: Accounts
  /// The default store.
  package let store: StoreIdentifier
  /// 0: any.
  package let port: UInt16
  /// Called with the page's address, which holds a secret, once the page can be opened.
  package let onReady: @Sendable (String) -> Void
  /// Called once the address was used, and is worth nothing any more.
  package let onUse: @Sendable () -> Void
}
