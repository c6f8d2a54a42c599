/// Empty: `Tests/hunt` rewrites this file in a copy of the tree, to plant the bugs of
/// `Tests/Canaries`.
package enum Canaries {
  package static let bugs: [(name: String, bug: String)] = []

  /// Runs the body with this bug in the core, in the current task only.
  package static func planting<Result>(_ name: String, _ body: () -> Result) -> Result { body() }
}
