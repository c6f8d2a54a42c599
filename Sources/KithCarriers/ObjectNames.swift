import Kith

/// Which names are objects and places.
///
/// Names of other programs' files have a dot, a tilde or a space: Syncthing's temporary files and
/// conflicts, those of editors and desktops, and our own temporary files.
enum ObjectNames {
  /// ASCII letters, digits, `-` and `_`, at most ``CarrierLimits/nameBytes``.
  static func isObject(_ name: some StringProtocol) -> Bool {
    (1...CarrierLimits.nameBytes).contains(name.utf8.count)
      && name.utf8.allSatisfy(isPart)
  }

  static func isPart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// The directories of a place, outermost first.
  ///
  /// - Throws: ``CarrierFailure/Code/unexpected`` if one of them is no name.
  static func directories(of place: String) throws(CarrierFailure) -> [String] {
    let names = place.split(separator: "/", omittingEmptySubsequences: false)
    guard (1...CarrierLimits.placeDepth).contains(names.count), names.allSatisfy(isObject) else {
      throw CarrierFailure(.unexpected, "“\(place)” cannot be the name of a place.")
    }
    return names.map(String.init)
  }

  /// - Throws: ``CarrierFailure/Code/unexpected`` if it is no object's name.
  @discardableResult
  static func checked(_ name: String) throws(CarrierFailure) -> String {
    guard isObject(name) else {
      throw CarrierFailure(.unexpected, "“\(name)” cannot be the name of an object.")
    }
    return name
  }
}
