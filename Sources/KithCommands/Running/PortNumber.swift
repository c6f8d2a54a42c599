import ArgumentParser

/// A TCP port that a person wrote: one to five digits, without a sign or spaces.
struct PortNumber: ExpressibleByArgument, Equatable {
  let number: UInt16

  init?(_ text: some StringProtocol) {
    // `UInt16` would also read a sign.
    guard (1...5).contains(text.utf8.count),
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = UInt16(text)
    else { return nil }
    self.number = number
  }

  init?(argument: String) { self.init(argument) }
}
