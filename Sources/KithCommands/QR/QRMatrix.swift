import Glibc

/// A QR code's modules, without its quiet zone. libqrencode, loaded only to draw, computes them, so
/// Kith builds and runs without it.
package struct QRMatrix: Equatable {
  static let package = "libqrencode4"

  /// The modules of a side.
  package let width: Int
  /// Line by line.
  let isDark: [Bool]

  init(width: Int, isDark: [Bool]) {
    precondition(isDark.count == width * width)
    self.width = width
    self.isDark = isDark
  }

  /// Makes the smallest code of a text whose case does not matter. Nil if the library is not
  /// installed, or the text is too long.
  package init?(caseless text: String) {
    guard let library = dlopen("libqrencode.so.4", RTLD_NOW) else { return nil }
    defer { dlclose(library) }
    guard let encode = dlsym(library, "QRcode_encodeString"),
      let free = dlsym(library, "QRcode_free")
    else { return nil }
    // Level L and 8-bit mode; capitals use the denser alphanumeric mode.
    let call = unsafeBitCast(encode, to: Encode.self)
    guard let code = call(text.uppercased(), 0, 0, 2, 0) else { return nil }
    defer { unsafeBitCast(free, to: Free.self)(code) }
    let width = Int(code.load(fromByteOffset: 4, as: Int32.self))
    let modules = code.load(fromByteOffset: 8, as: UnsafePointer<UInt8>.self)
    guard (21...177).contains(width) else { return nil }
    // The lowest bit of a module is its colour.
    self.init(width: width, isDark: (0..<width * width).map { modules[$0] & 1 == 1 })
  }

  /// Modules outside the code are light.
  package subscript(line: Int, column: Int) -> Bool {
    guard (0..<width).contains(line), (0..<width).contains(column) else { return false }
    return isDark[line * width + column]
  }

  private typealias Encode =
    @convention(c) (UnsafePointer<CChar>, Int32, Int32, Int32, Int32) -> UnsafeMutableRawPointer?
  private typealias Free = @convention(c) (UnsafeMutableRawPointer) -> Void
}
