import Foundation

/// One function that libFuzzer calls with one input after the other.
struct FuzzTarget: Sendable {
  let name: String
  /// Runs an input; a broken promise ends the process.
  let run: @Sendable (UnsafeRawBufferPointer) -> Void
  /// Inputs to begin with, by name, the same at every call.
  let seeds: @Sendable () throws -> [(name: String, bytes: [UInt8])]
}

/// All of them, in the order in which they are listed.
let fuzzTargets: [FuzzTarget] = [
  .frames, .noise, .pairing, .discovery, .values, .messages, .changeSets, .objects, .imports,
  .control,
]

/// The target of this process: the variable is handed down to the processes that libFuzzer starts.
private let chosen: FuzzTarget = {
  let name = ProcessInfo.processInfo.environment["KITH_FUZZ_TARGET"] ?? ""
  guard let target = fuzzTargets.first(where: { $0.name == name }) else {
    FileHandle.standardError.write(
      Data("KITH_FUZZ_TARGET names no target; use Tests/fuzz\n".utf8))
    exit(2)
  }
  return target
}()

/// Called by libFuzzer before anything else.
@_cdecl("LLVMFuzzerInitialize")
public func initializeFuzzer(
  _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutableRawPointer
) -> CInt {
  let environment = ProcessInfo.processInfo.environment
  if environment["KITH_FUZZ_LIST"] != nil {
    for target in fuzzTargets { print(target.name) }
    exit(0)
  }
  if let directory = environment["KITH_FUZZ_SEEDS"] {
    do {
      try writeSeeds(to: URL(fileURLWithPath: directory, isDirectory: true))
      exit(0)
    } catch {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }
  _ = chosen
  return 0
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  chosen.run(UnsafeRawBufferPointer(start: bytes, count: count))
  return 0
}

/// Writes each target's seeds into a directory of its name, instead of all earlier seeds.
private func writeSeeds(to directory: URL) throws {
  for target in fuzzTargets {
    let folder = directory.appendingPathComponent(target.name, isDirectory: true)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A seed of an older format would waste the fuzzer's time, and nobody would see it.
    for fileName in try FileManager.default.contentsOfDirectory(atPath: folder.path)
    where fileName.hasPrefix("seed-") {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(fileName))
    }
    for seed in try target.seeds() {
      let fileName = "seed-" + seed.name.replacing(" ", with: "-")
      try Data(seed.bytes).write(to: folder.appendingPathComponent(fileName))
    }
  }
}
