extension ChangeSetLog {
  func isWithheld(_ device: DeviceID) -> Bool { withheld.contains(device) }

  /// Whether data of withheld chains is kept.
  var holdsWithheld: Bool {
    withheld.contains { incarnations[$0] != nil }
  }

  mutating func dropWithheld(in store: StoreIdentifier) -> [Mutation] {
    guard holdsWithheld else { return [] }
    let withheld = withheld
    return drop(chains: { withheld.contains($0.device) }, in: store)
  }
}
