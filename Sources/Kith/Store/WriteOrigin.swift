/// Which program of this host wrote. Each hears of the others' writes as from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The one that has the directory open.
  case owner
  /// One that wrote over the control socket, by the number of its connection.
  case guest(UInt64)
}

/// Whose writes a consumer of changes takes for its own.
enum Perspective: Hashable, Sendable {
  /// Those of one program.
  case program(WriteOrigin)
  /// Those of all programs of this device, as `kith watch` tells them.
  case device

  /// Why a program's write changed what is shown, as seen from here.
  func reason(of origin: WriteOrigin) -> Change.Reason {
    switch self {
    case .program(let own): own == origin ? .ownWrite : .serverChange
    case .device: .ownWrite
    }
  }
}
