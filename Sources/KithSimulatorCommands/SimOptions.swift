internal import ArgumentParser
internal import Foundation
internal import KithSimulator
internal import KithTerminal

struct SimOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "At most so many devices, 2 to 64, or a range such as 12-64.",
      valueName: "number"))
  var devices = "64"

  @Option(
    help: ArgumentHelp(
      "Only these faults, with commas. Default: some of all in each run.",
      discussion: "Faults: \(Fault.allCases.map(\.rawValue).joined(separator: ", ")).",
      valueName: "names"))
  var faults: String?

  func bounds() throws(CommandFailure) -> ScheduleMaker.Bounds {
    let numbers = devices.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard let most = numbers.last ?? nil, let fewest = numbers.count == 2 ? numbers[0] : 2,
      numbers.count <= 2, 2 <= fewest, fewest <= most, most <= 64
    else {
      throw CommandFailure(
        .usage, "--devices takes 2 to 64, or a range such as 12-64, and not \"\(devices)\"")
    }
    var chosen: [Fault]?
    if let faults {
      chosen = []
      for name in faults.split(separator: ",") {
        guard let fault = Fault(rawValue: String(name)) else {
          let all = Fault.allCases.map(\.rawValue).joined(separator: ", ")
          throw CommandFailure(.usage, "there is no fault \"\(name)\"; there are \(all)")
        }
        chosen?.append(fault)
      }
    }
    return ScheduleMaker.Bounds(devices: fewest...most, faults: chosen)
  }

  /// For a command line that repeats a run.
  var text: String {
    (devices == "64" ? "" : " --devices \(devices)") + (faults.map { " --faults \($0)" } ?? "")
  }

  func schedule(_ text: String) throws(CommandFailure) -> Schedule {
    if let seed = UInt64(text) { return ScheduleMaker.schedule(seed: seed, within: try bounds()) }
    do {
      return try JSONDecoder().decode(
        Schedule.self, from: Data(contentsOf: URL(filePath: text)))
    } catch {
      throw CommandFailure(
        .failure, "\(text) is neither a seed nor a file that holds a schedule: \(error)")
    }
  }
}

extension Schedule {
  var json: Data {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      return try encoder.encode(self) + Data("\n".utf8)
    }
  }
}

/// Reads numbers of devices, with commas.
func deviceCounts(_ texts: String, atMost most: Int) throws(CommandFailure) -> [Int] {
  var counts: [Int] = []
  for text in texts.split(separator: ",") {
    guard let count = Int(text), (2...most).contains(count) else {
      throw CommandFailure(.usage, "--devices takes numbers from 2 to \(most), and not \"\(text)\"")
    }
    counts.append(count)
  }
  guard !counts.isEmpty else { throw CommandFailure(.usage, "--devices takes numbers") }
  return counts
}

func json(_ value: some Encodable) throws -> String {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
  return String(decoding: try encoder.encode(value), as: UTF8.self)
}
