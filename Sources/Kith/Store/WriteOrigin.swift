/// The program of this host that wrote. For each program, the others' writes come from outside.
enum WriteOrigin: Hashable, Sendable {
  /// The program that has the directory open.
  case owner
  /// An attached program, by the number of its connection.
  case attached(UInt64)
}
