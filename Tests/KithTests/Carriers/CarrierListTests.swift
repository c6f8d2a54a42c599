import Foundation
import KithCore
import KithStorage
import KithTestSupport
import Testing

@testable import Kith

/// Which carriers a device uses: its own, which it keeps sealed, then the account's, up to a limit.
@Suite struct CarrierListTests {
  @Test func `a program may not open the account's own stores`() async throws {
    let directory = try TestDirectory()
    let accounts = try Accounts(Accounts.Configuration(directory: directory.path))
    let error = #expect(throws: KithError.self) { try accounts.store("kith.carriers") }
    #expect(error?.code == .invalidStoreIdentifier)
    try accounts.close()
  }

  @Test func `a device's own carriers outlive the node and are sealed on the disk`() async throws {
    let nodes = try await Nodes()
    let own = (0..<8).map {
      CarrierSettings(
        kind: "webdav", location: "http://nas-\($0).example/kith", credentials: "me\nhunter2")
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for settings in own { group.addTask { try await nodes.first.keepCarrier(settings) } }
      try await group.waitForAll()
    }
    #expect(try await nodes.first.carriers().count == 8, "of two at once one was lost")
    try await nodes.first.removeCarrier(own[0])
    try nodes.first.close()

    for name in try FileManager.default.contentsOfDirectory(atPath: nodes.directory.child("0")) {
      let file = URL(filePath: nodes.directory.child("0")).appending(path: name)
      guard let bytes = try? Data(contentsOf: file) else { continue }
      for text in ["hunter2", "nas-1.example"] {
        #expect(bytes.range(of: Data(text.utf8)) == nil, "\(name) has \(text)")
      }
    }
    let again = try await Node.open(.init(directory: nodes.directory.child("0")))
    #expect(try await Set(again.carriers()) == Set(own.dropFirst()))
    try again.close()
  }

  @Test func `the list of a device's own carriers has an end`() async throws {
    let nodes = try await Nodes()
    func carrier(_ number: Int) -> CarrierSettings {
      CarrierSettings(kind: "folder", location: "/mnt/stick-\(number)")
    }
    for number in 0..<CarrierList.limit { try await nodes.first.keepCarrier(carrier(number)) }
    let error = await #expect(throws: KithError.self) {
      try await nodes.first.keepCarrier(carrier(CarrierList.limit))
    }
    #expect(error?.code == .valueTooLarge)
    var changed = carrier(0)
    changed.credentials = "me\nhunter2"
    try await nodes.first.keepCarrier(changed)
    #expect(try await nodes.first.carriers().count == CarrierList.limit)
    try await nodes.first.removeCarrier(carrier(1))
    try await nodes.first.keepCarrier(carrier(CarrierList.limit))
    try nodes.first.close()
  }

  @Test func `a device's own carriers come before the account's`() async throws {
    let nodes = try await Nodes()
    let node = nodes.first
    var shared: [CarrierSettings] = []
    for number in 0..<8 {
      shared.append(
        CarrierSettings(
          kind: "s3", location: "https://s3.example/bucket-\(number)", isShared: true))
      try await node.keepCarrier(shared[number])
    }
    shared.sort { $0.id < $1.id }
    var own = CarrierSettings(kind: "folder", location: "/mnt/stick")
    while own.id < shared[4].id { own.location += "x" }
    try await node.keepCarrier(own)
    #expect(try await node.carriers() == [own] + shared)
    #expect(
      node.status.carriers.prefix(Limits.carriers).map(\.location)
        == [own.location] + shared.prefix(3).map(\.location))

    // One that is in both lists is the device's own, for its use and for changes.
    var both = shared[7]
    (both.isShared, both.credentials) = (false, "other\nkeys")
    try await node.keepCarrier(both)
    #expect(try await node.carriers().first { $0.id == both.id } == both)
    try await node.removeCarrier(both)
    #expect(try await node.carriers().first { $0.id == both.id } == shared[7])
    try node.close()
  }

  @Test func `a list of own carriers that cannot be read stops no node`() async throws {
    let nodes = try await Nodes()
    try nodes.first.close()
    let path = nodes.directory.child("0")
    let device = try DeviceDirectory.open(at: path, passphrase: nil)
    try device.storage.setCarriers(Array("[".utf8))
    try device.close()

    let lines = Journal.Lines()
    var configuration = Node.Configuration(directory: path)
    configuration.logger = lines.logger
    let node = try await Node.open(configuration)
    #expect(try await node.carriers().isEmpty)
    #expect(lines.all.contains { $0.contains("this device's own carriers cannot be read") })
    try await node.keepCarrier(SharedStorage.settings)
    #expect(try await node.carriers() == [SharedStorage.settings])
    try node.close()
  }

  @Test func `a carrier above the limit is named with the way to make room`() async throws {
    let nodes = try await Nodes()
    let node = nodes.first
    for number in 0..<30 {
      try await node.keepCarrier(
        CarrierSettings(kind: "test", location: "/\(number)", isShared: number > 0))
    }
    let carriers = node.status.carriers
    #expect(carriers.count == Limits.carriers + CarrierList.mostUnusedShown)
    #expect(carriers.first?.location == "/0", "the device's own comes first")
    #expect(carriers.prefix(Limits.carriers).allSatisfy { $0.problem == nil })
    for carrier in carriers.dropFirst(Limits.carriers) {
      #expect(carrier.problem?.contains("30 are known here") == true)
      #expect(carrier.problem?.contains("kith carrier remove") == true)
    }
    try node.close()
  }

  @Test func `only a carrier under its own name counts`() {
    let settings = CarrierSettings(kind: "s3", location: "https://s3.example.com/b", isShared: true)
    let value = settings.value
    #expect(CarrierSettings.shared(in: [Key(settings.id.description): value]) == [settings])
    #expect(CarrierSettings.shared(in: [Key("another"): value]).isEmpty)
    #expect(CarrierSettings.shared(in: [Key(settings.id.description): "text"]).isEmpty)
  }
}
