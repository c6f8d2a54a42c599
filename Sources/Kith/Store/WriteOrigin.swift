internal import KithCore

/// The program of this host that wrote. To each program, writes of the others come from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The program that has the directory open.
  case owner
  /// A program that wrote over the control socket, by the number of its connection.
  case guest(UInt64)
}

/// The programs whose writes a consumer of changes takes for its own.
enum Perspective: Hashable, Sendable {
  /// One program.
  case program(WriteOrigin)
  /// All programs of this device, as in `kith watch`.
  case device

  /// Returns the reason of a change that a program's write made, for this consumer.
  func reason(of origin: WriteOrigin) -> ChangeReason {
    switch self {
    case .program(let own): own == origin ? .ownWrite : .serverChange
    case .device: .ownWrite
    }
  }
}
