/// Text for commands that people are told to run.
package enum ShellText {
  /// A text as one word of a shell, in single quotes.
  package static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
