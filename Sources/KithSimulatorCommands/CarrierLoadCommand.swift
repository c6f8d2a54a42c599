internal import ArgumentParser
internal import KithSimulator
internal import KithTerminal

struct CarrierLoadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "carrier", abstract: "Measure what devices ask of a carrier.",
    discussion: """
      The production core in virtual time, without faults: devices that are always on meet on one
      carrier alone, and write so many changes a day at random times. Shows the requests and bytes
      of all devices together, for the days and for an idle day after them, what the carrier holds
      at the end and held at most, and how long a change takes until all show it. A seed gives the
      same figures each time.
      """)

  @Option(
    help: ArgumentHelp("Numbers of devices, with commas.", valueName: "numbers"))
  var devices = "2,8,32"
  @Option(help: ArgumentHelp("How many days.", valueName: "number")) var days = 1
  @Option(help: ArgumentHelp("How many changes a day.", valueName: "number")) var changes = 50
  @Option(help: ArgumentHelp("The seed of all randomness.", valueName: "seed")) var seed: UInt64 = 1
  @Flag(help: "Print JSON.") var json = false

  func run() throws {
    let sizes = try deviceCounts(devices, atMost: 64)
    guard (1...1_000).contains(days), (0...10_000).contains(changes) else {
      throw CommandFailure(.usage, "--days takes 1 to 1000, and --changes 0 to 10000")
    }
    let console = Console()
    let results = sizes.map { size in
      CarrierLoad.run(
        CarrierLoad.Setup(devices: size, days: days, changesPerDay: changes, seed: seed)
      ) { day in
        if day % 30 == 0 { console.talk("\(size) devices: day \(day) of \(days)") }
      }
    }
    try console.data(
      json ? KithSimulatorCommands.json(results) : Self.table(results).text(Style.output))
    if results.contains(where: { $0.missing > 0 }) {
      throw CommandFailure(.failure, "a change did not come to all devices")
    }
  }

  private static func table(_ results: [CarrierLoad.Result]) -> Table {
    var table = Table([
      ("DEVICES", .right), ("LISTS", .right), ("GETS", .right), ("PUTS", .right),
      ("DELETES", .right), ("GOT", .right), ("PUT", .right), ("IDLE DAY", .right),
      ("OBJECTS", .right), ("MOST", .right), ("SIZE", .right), ("MOST", .right),
      ("MEDIAN ms", .right), ("LONGEST ms", .right),
    ])
    for result in results {
      let work = result.work
      table.add(
        [
          "\(result.setup.devices)", "\(work.lists)", "\(work.gets)", "\(work.puts)",
          "\(work.deletes)", Format.bytes(work.bytesGot), Format.bytes(work.bytesPut),
          "\(result.idleDay.requests)", "\(result.objects)", "\(result.mostObjects)",
          Format.bytes(result.bytes), Format.bytes(result.mostBytes),
          "\(result.medianMilliseconds)", "\(result.longestMilliseconds)",
        ].map { Table.Cell($0) })
    }
    return table
  }
}
