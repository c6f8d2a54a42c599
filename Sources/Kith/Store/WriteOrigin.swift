internal import KithCore

/// The program of this host that wrote. For each program, the others' writes come from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The program that has the directory open.
  case owner
  /// An attached program, by the number of its connection.
  case guest(UInt64)
}

/// The programs whose writes a consumer counts as its own.
enum Perspective: Hashable, Sendable {
  case program(WriteOrigin)
  /// All programs of this device, as in `kith watch`.
  case device

  func reason(of origin: WriteOrigin) -> ChangeReason {
    switch self {
    case .program(let own): own == origin ? .ownWrite : .serverChange
    case .device: .ownWrite
    }
  }
}
