@testable import KithCrypto

@testable import KithCore

/// Inputs of ``FuzzTarget/messages``: real messages with gaps in them.
enum MessageSeeds {
  private static func have(number: UInt64 = 1) -> WireMessage {
    var message = WireMessage()
    message.have.number = number
    message.have.whole = true
    message.have.all = true
    var store = WireStoreHave()
    var entry = WireVectorEntry()
    entry.device = .init([1])
    entry.incarnation = 1
    entry.sequence = 2
    store.vector = [entry]
    store.digest = .init([0])
    message.have.stores = [store]
    return message
  }

  /// Of one author; the last message covers them.
  private static func batch(_ numbers: [UInt8], answers: UInt64 = 0, more: Bool = false)
    -> WireMessage
  {
    var message = WireMessage()
    message.batch.answers = answers
    for number in numbers {
      var changeSet = WireChangeSet()
      changeSet.header = .init([number])
      message.batch.changeSets.append(changeSet)
    }
    message.batch.more = more
    if !more, let last = numbers.last {
      var cover = WireCover()
      cover.device = .init([last / 4 + 1])
      cover.incarnation = UInt64(last / 4 + 1)
      cover.through = UInt64(last % 4 + 1)
      message.batch.covers = [cover]
    }
    return message
  }

  /// Each by a device with a content, of one of its processes.
  private static func words(
    _ list: (device: UInt8, content: UInt8, process: UInt64, number: UInt64)...,
    signer: UInt8? = nil
  ) -> WireMessage {
    var message = WireMessage()
    message.have.words = list.map { device, content, process, number in
      var said = WireSaid()
      said.device = UInt64(device)
      said.process = process
      said.number = number
      said.signature = .init([signer ?? device])
      var group = WireWords()
      group.content = .init([content])
      group.said = [said]
      return group
    }
    message.have.wordsDigest = .init([1])
    return message
  }

  private static func records(_ numbers: [UInt8]) -> WireMessage {
    var message = WireMessage()
    message.records.records = numbers.map { number in
      var record = WireRecord()
      record.body = .init([number])
      return record
    }
    return message
  }

  private static var addresses: WireMessage {
    var message = WireMessage()
    var device = WireDeviceAddresses()
    device.device = .init([2])
    device.addresses = ["192.0.2.1:4114", "[2001:db8::1]:4114"]
    message.addresses.devices = [device]
    return message
  }

  private static func arrive(_ message: WireMessage, on slot: Int, _ output: inout FuzzOutput) {
    output.bytes(3, slot)
    output.block(message.encodedBytes())
    output.byte(1)
  }

  static var all: [(name: String, bytes: [UInt8])] {
    var seeds: [(String, [UInt8])] = []
    func add(_ name: String, _ build: (inout FuzzOutput) -> Void) {
      var output = FuzzOutput()
      build(&output)
      seeds.append((name, output.bytes))
    }
    add("have") { arrive(have(), on: 0, &$0) }
    add("batch") {
      arrive(have(), on: 0, &$0)
      arrive(batch([0, 1, 2], answers: 1), on: 0, &$0)
      arrive(batch([4, 5]), on: 1, &$0)
    }
    add("parts") {
      arrive(batch([0, 1], answers: 1, more: true), on: 0, &$0)
      arrive(batch([2, 3], answers: 1), on: 0, &$0)
    }
    add("claims too much") {
      var message = batch([0, 1])
      message.batch.covers[0].through = 100
      arrive(message, on: 0, &$0)
    }
    add("gap") {
      var message = batch([2, 3])
      message.batch.covers[0].from = 2
      arrive(message, on: 0, &$0)
    }
    add("flaws") { output in
      for number in 8..<12 { arrive(batch([UInt8(number)]), on: 1, &output) }
    }
    add("words") { output in
      arrive(have(), on: 0, &output)
      arrive(batch([0, 1, 2], answers: 1), on: 0, &output)
      // Of a device without a session, of the peer itself, and later ones.
      arrive(words((3, 0, 1, 100), (1, 0x0c, 1, 100), (2, 0x4e, 1, 90)), on: 0, &output)
      arrive(words((3, 0x0e, 2, 101), (2, 0x20, 1, 110)), on: 1, &output)
      output.bytes(6, 0, 8, 1)
    }
    add("words of this device") { output in
      arrive(have(), on: 0, &output)
      arrive(words((0, 0, 1, 129)), on: 0, &output)
      arrive(words((0, 0, 2, 250)), on: 1, &output)
    }
    add("forged word") { arrive(words((3, 0, 1, 100), signer: 1), on: 0, &$0) }
    add("records") {
      arrive(records([0, 1, 2, 3]), on: 2, &$0)
      arrive(records([9, 10, 4]), on: 0, &$0)
    }
    add("addresses") { arrive(addresses, on: 0, &$0) }
    add("writes") { output in
      arrive(have(), on: 0, &output)
      for key in 0..<6 { output.bytes(7, key, 100 + key, key & 1) }
      arrive(batch([0, 1, 2, 3], answers: 1), on: 0, &output)
      arrive(have(number: 2), on: 1, &output)
      output.bytes(6, 2, 0, 1, 13, 0, 8, 0, 2, 1)
    }
    add("sessions") {
      $0.bytes(8, 0, 2, 0, 9, 1, 0, 10, 0, 0, 1, 0, 11, 0, 1, 0, 1, 12, 40, 1, 14, 3, 1)
    }
    add("ourselves") { $0.bytes(8, 0, 0xc0, 1, 8, 1, 0x41, 1, 8, 2, 0x23, 1) }
    add("stranger") {
      arrive(have(), on: 2, &$0)
      arrive(batch([0]), on: 2, &$0)
    }
    return seeds
  }
}
