/// The bugs that this build can plant: none. `Tests/hunt` plants those of `Tests/Canaries` in a copy of
/// the tree, in which it writes this file anew.
package enum Canaries {
  /// The names and descriptions of the bugs.
  package static let bugs: [(name: String, bug: String)] = []

  /// Plants a bug in the place of any other; nil: none.
  package static func plant(_ name: String?) {}
}
