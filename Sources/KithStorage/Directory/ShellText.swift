/// Text for commands that people should run.
package enum ShellText {
  /// Returns a text as one word of a shell, in single quotes.
  package static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
