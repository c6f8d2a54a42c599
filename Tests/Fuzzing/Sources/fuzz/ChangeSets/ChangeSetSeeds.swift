/// Inputs of ``FuzzTarget/changeSets``: each is a few change sets, in the bytes that
/// `ForgedChangeSet` reads.
enum ChangeSetSeeds {
  /// An entry whose clocks are those of its change set.
  private static func value(_ key: Int, size: Int, more: Int = 0) -> [Int] {
    [key, 0x30 | more, 9, 9, 0, size, key]
  }

  private static func seed(order: Int, writing: Int, _ sets: [[Int]]) -> [UInt8] {
    ([order, writing] + sets.joined()).map { UInt8(truncatingIfNeeded: $0) }
  }

  static var all: [(name: String, bytes: [UInt8])] {
    /// author, incarnation, sequence less one, clock, flaws, number of entries
    func set(_ author: Int, _ sequence: Int, _ clock: Int, flaws: Int = 9, _ entries: [Int]...)
      -> [Int]
    {
      [author, 0, sequence, clock, flaws, entries.count] + entries.joined()
    }
    let plain = [set(0, 0, 1, value(0, size: 1)), set(1, 0, 2, value(0, size: 2))]
    let removal = [0, 0x33, 9, 9, 0]
    return [
      ("plain", seed(order: 4, writing: 3, plain)),
      ("alone", seed(order: 0xff, writing: 0x2c, plain)),
      (
        "full",
        seed(
          order: 8, writing: 0x17,
          (0..<6).map { set($0 % 2, $0, 10 + $0, value($0, size: 3), value(5 - $0, size: 2)) })
      ),
      ("removed", seed(order: 3, writing: 0, plain + [set(0, 1, 3, removal)])),
      (
        "fork",
        seed(
          order: 2, writing: 1, [set(0, 0, 1, value(0, size: 1)), set(0, 0, 2, value(1, size: 1))])
      ),
      ("ahead", seed(order: 6, writing: 1, plain + [set(1, 1, 0xff, value(2, size: 1))])),
      (
        "other store",
        seed(order: 1, writing: 0, plain + [set(0, 1, 4, flaws: 1, value(2, size: 1))])
      ),
      (
        "other account",
        seed(order: 1, writing: 0, plain + [set(0, 1, 4, flaws: 2, value(2, size: 1))])
      ),
      (
        "other epoch",
        seed(order: 1, writing: 0, plain + [set(0, 1, 4, flaws: 3, value(2, size: 1))])
      ),
      ("our own", seed(order: 5, writing: 4, plain + [set(4, 0, 6, value(3, size: 2))])),
      (
        "fallback",
        seed(
          order: 9, writing: 2,
          plain + [
            set(
              1, 1, 9, [0, 0x38, 9, 9, 0, 4, 0, 2, 1, 9, 0], value(1, size: 4), value(2, size: 4))
          ])
      ),
      (
        "replaced",
        seed(order: 9, writing: 2, plain + [set(1, 1, 9, [0, 0x34, 9, 9, 0, 1, 0, 1, 1])])
      ),
      (
        "late stamp",
        seed(order: 9, writing: 2, plain + [set(1, 1, 9, [0, 0, 40, 9, 41, 9, 0, 1, 0])])
      ),
      (
        "cut",
        seed(order: 9, writing: 2, plain + [set(1, 1, 9, [0, 0xf0, 9, 9, 0, 1, 0, 3, 0xff])])
      ),
      (
        "over the policy",
        seed(order: 9, writing: 2, [set(1, 1, 9, value(6, size: 1), value(2, size: 5))])
      ),
      (
        "sequences",
        seed(order: 9, writing: 2, [set(1, 0xfe, 9), set(1, 0xfd, 9), set(0, 0xff, 9)])
      ),
    ]
  }
}
