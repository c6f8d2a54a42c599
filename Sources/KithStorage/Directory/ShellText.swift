/// For commands that people should run.
package enum ShellText {
  /// One word, in single quotes.
  package static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
