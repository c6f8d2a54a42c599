/// Empty: `Tests/hunt` rewrites this file in a copy of the tree, to plant the bugs of
/// `Tests/Canaries`.
package enum Canaries {
  package static let bugs: [(name: String, bug: String)] = []

  /// Replaces the planted bug; nil: none.
  package static func plant(_ name: String?) {}
}
