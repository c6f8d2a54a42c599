import KithCore
import KithSimulator
import Testing

/// The data that a crash leaves on a disk of the simulator.
@Suite struct SimulatedDiskTests {
  private let first: [Mutation] = [
    .put(.clock, HybridTime(rawValue: 1).row), .put(.incarnation, Incarnation(rawValue: 7).row),
  ]
  private let second: [Mutation] = [
    .put(.clock, HybridTime(rawValue: 2).row), .put(.incarnation, Incarnation(rawValue: 8).row),
  ]

  @Test(arguments: 0...1) func `a torn commit is not there, and those before it are`(
    written: Int
  ) throws {
    let disk = SimulatedDisk()
    try disk.commit(first)
    disk.crash(writing: second, written: written)
    let snapshot = try disk.load()
    #expect(snapshot.clock == HybridTime(rawValue: 1))
    #expect(snapshot.incarnation == Incarnation(rawValue: 7))
    try disk.commit(second)
    #expect(try disk.load().incarnation == Incarnation(rawValue: 8))
  }

  @Test func `a commit that was written whole is there, though nobody was told`() throws {
    let disk = SimulatedDisk()
    disk.crash(writing: second, written: second.count)
    #expect(try disk.load().incarnation == Incarnation(rawValue: 8))
  }

  @Test func `a full disk takes nothing, and gives what it has`() throws {
    let disk = SimulatedDisk()
    try disk.commit(first)
    disk.setFull(true)
    #expect(throws: StorageError.self) { try disk.commit(second) }
    #expect(try disk.load().clock == HybridTime(rawValue: 1))
    disk.setFull(false)
    try disk.commit(second)
    #expect(try disk.load().clock == HybridTime(rawValue: 2))
  }

  @Test func `a bit that flipped is found, and a copy from before is sound`() throws {
    let disk = SimulatedDisk()
    try disk.commit(first)
    let copy = disk.copy(isNoticed: true)
    disk.flipBit()
    #expect(throws: StorageError.self) { try disk.load() }
    #expect(try copy.load().clock == HybridTime(rawValue: 1))
    #expect(copy.isCopy)
    try copy.commit(first)
    #expect(!copy.isCopy)
  }

  @Test func `a long log is checkpointed, and says the same`() throws {
    let disk = SimulatedDisk()
    for number in UInt64(1)...200 {
      try disk.commit([.put(.clock, HybridTime(rawValue: number).row)])
    }
    disk.crash(writing: first, written: 1)
    #expect(try disk.load().clock == HybridTime(rawValue: 200))
  }
}
