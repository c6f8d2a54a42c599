import ArgumentParser

/// Reads numbers of options. The error names the range.
enum NumberOption {
  @Sendable static func port(_ text: String) throws -> UInt16 {
    guard let port = UInt16(text) else {
      throw ValidationError("A port is a number from 0 to 65535.")
    }
    return port
  }
}
