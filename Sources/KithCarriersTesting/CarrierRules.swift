import Kith

extension CarrierConformance {
  func newPlaceIsEmpty() async throws {
    let (storage, place) = try await made()
    let objects = try await storage.list(place, limit: 10)
    try expect(objects.isEmpty, "it lists \(objects)")
  }

  func bytesComeBack() async throws {
    let (storage, place) = try await made()
    for (index, count) in [0, 1, 4_096].enumerated() {
      let bytes = Self.bytes(count)
      try await storage.put(bytes, as: Self.name(index), in: place)
      let got = try await storage.get(Self.name(index), from: place, limit: count)
      try expect(got == bytes, "\(count) bytes came back as \(got?.count ?? -1) or others")
    }
  }

  func listingHasSizes() async throws {
    let (storage, place) = try await made()
    let sizes = [0, 1, 4_096]
    for (index, count) in sizes.enumerated() {
      try await storage.put(Self.bytes(count), as: Self.name(index), in: place)
    }
    let expected = sizes.indices.map { CarrierObject(name: Self.name($0), bytes: sizes[$0]) }
    try await expectListing(of: storage, place, expected)
    try await storage.delete(Self.name(1), from: place)
    try await expectListing(of: storage, place, [expected[0], expected[2]])
  }

  func largeObjectsPass() async throws {
    let (storage, place) = try await made()
    let bytes = Self.bytes(4 << 20)
    try await storage.put(bytes, as: Self.name(0), in: place)
    let got = try await storage.get(Self.name(0), from: place, limit: bytes.count)
    try expect(got == bytes, "\(bytes.count) bytes came back as \(got?.count ?? -1) or others")
    let object = CarrierObject(name: Self.name(0), bytes: bytes.count)
    try await expectListing(of: storage, place, [object])
  }

  func missingIsNil() async throws {
    let (storage, place) = try await made()
    let got = try await storage.get(Self.name(0), from: place, limit: 10)
    try expect(got == nil, "it has \(got?.count ?? -1) bytes")
  }

  func deletingTwice() async throws {
    let (storage, place) = try await made()
    try await storage.put([1], as: Self.name(0), in: place)
    try await storage.delete(Self.name(0), from: place)
    try await storage.delete(Self.name(0), from: place)
    try await storage.delete(Self.name(1), from: place)
    try await expectListing(of: storage, place, [])
  }

  func listLimit() async throws {
    let (storage, place) = try await made()
    for index in 0..<3 { try await storage.put([1], as: Self.name(index), in: place) }
    let listed = try await storage.list(place, limit: 3)
    try expect(listed.count == 3, "a listing at its limit has \(listed.count) objects")
    try await expectFailure(.tooMuch) { _ = try await storage.list(place, limit: 2) }
  }

  func getLimit() async throws {
    let (storage, place) = try await made()
    try await storage.put(Self.bytes(200_000), as: Self.name(0), in: place)
    try await expectFailure(.tooMuch) {
      _ = try await storage.get(Self.name(0), from: place, limit: 199_999)
    }
    try await expectFailure(.tooMuch) {
      _ = try await storage.get(Self.name(0), from: place, limit: 0)
    }
  }

  func missingPlace() async throws {
    guard hasPlaces else { return }
    let storage = try await storage()
    let place = place()
    try await expectFailure(.notThere) { _ = try await storage.list(place, limit: 10) }
    try await expectFailure(.notThere) {
      _ = try await storage.get(Self.name(0), from: place, limit: 10)
    }
    try await expectFailure(.notThere) {
      try await storage.put([1], as: Self.name(0), in: place)
    }
    try await expectFailure(.notThere) { try await storage.delete(Self.name(0), from: place) }
    // A put made nothing by the way.
    try await expectFailure(.notThere) { _ = try await storage.list(place, limit: 10) }
  }

  func makingTwice() async throws {
    let (storage, place) = try await made()
    try await storage.put([1], as: Self.name(0), in: place)
    try await storage.makePlace(place)
    try await expectListing(of: storage, place, [CarrierObject(name: Self.name(0), bytes: 1)])
  }

  func twoPlaces() async throws {
    let (storage, place) = try await made()
    let other = self.place()
    try await storage.makePlace(other)
    try await storage.put([1], as: Self.name(0), in: place)
    try await expectListing(of: storage, other, [])
    let got = try await storage.get(Self.name(0), from: other, limit: 10)
    try expect(got == nil, "the other place has the object")
  }

  func concurrentPuts() async throws {
    let (storage, place) = try await made()
    let count = 16
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        group.addTask {
          try await storage.put(Self.bytes(5_000 + index), as: Self.name(index), in: place)
        }
      }
      // A listing meanwhile has whole objects only; half-written ones may show on servers.
      _ = try await storage.list(place, limit: 100)
      try await group.waitForAll()
    }
    try await expectListing(
      of: storage, place,
      (0..<count).map { CarrierObject(name: Self.name($0), bytes: 5_000 + $0) })
  }

  func anotherDevice() async throws {
    let (storage, place) = try await made()
    try await storage.put([1, 2], as: Self.name(0), in: place)
    let other = try await self.storage()
    try await expectListing(of: other, place, [CarrierObject(name: Self.name(0), bytes: 2)])
    try await other.delete(Self.name(0), from: place)
    try await expectListing(of: storage, place, [])
  }

  func cancelled() async throws {
    let (storage, place) = try await made()
    let bytes = Self.bytes(4 << 20)
    let task = Task {
      for index in 0..<1_000_000 where !Task.isCancelled {
        try await storage.put(bytes, as: Self.name(index % 4), in: place)
      }
    }
    try await storage.put([1], as: Self.name(9), in: place)
    let start = ContinuousClock.now
    task.cancel()
    _ = await task.result
    let time = ContinuousClock.now - start
    try expect(time < cancellationLimit, "it took \(time)")
    // The next operation works.
    let got = try await storage.get(Self.name(9), from: place, limit: 1)
    try expect(got == [1], "an object is gone afterwards")
  }

  func hostileNames() async throws {
    let (storage, place) = try await made()
    for name in ["", ".", "..", "../x", "a/b", "a b", "a\0b", "ä", ".hidden", "a%2Fb"] {
      do {
        try await storage.put([1], as: name, in: place)
        throw Broken(message: "it put an object named “\(name)”")
      } catch is CarrierFailure {}
    }
    try await expectListing(of: storage, place, [])
  }
}

extension CarrierConformance {
  private func made() async throws -> (any CarrierStorage, String) {
    let storage = try await storage()
    let place = place()
    try await storage.makePlace(place)
    return (storage, place)
  }

  private func expect(_ holds: Bool, _ message: String) throws(Broken) {
    if !holds { throw Broken(message: message) }
  }

  private func expectListing(
    of storage: any CarrierStorage, _ place: String, _ objects: [CarrierObject]
  ) async throws {
    let listed = try await storage.list(place, limit: 1_000).sorted { $0.name < $1.name }
    try expect(
      listed == objects.sorted { $0.name < $1.name },
      "expected \(objects.map(\.bytes)), listed \(listed)")
  }

  private func expectFailure(
    _ code: CarrierFailure.Code, _ operation: () async throws -> Void
  ) async throws {
    do {
      try await operation()
    } catch let failure as CarrierFailure where failure.code == code {
      return
    } catch {
      throw Broken(message: "expected \(code), but it failed with “\(error)”")
    }
    throw Broken(message: "expected \(code), but it succeeded")
  }

  /// 32 hex digits, like the names that Kith gives.
  private static func name(_ index: Int) -> String {
    let digits = String(index, radix: 16)
    return String(repeating: "a", count: 32 - digits.count) + digits
  }

  /// Bytes of all values, with a period that is prime, so that exchanged pieces show.
  private static func bytes(_ count: Int) -> [UInt8] {
    let period = 65_537
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    let block = (0..<min(count, period)).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += block.prefix(count - bytes.count) }
    return bytes
  }
}
