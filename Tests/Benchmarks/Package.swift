// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("ExistentialAny"),
  .treatAllWarnings(as: .error),
]
let internals = Target.Dependency.product(name: "_KithInternals", package: "kith")

// Built by Tests/bench, with `-enable-testing`, so that the measured internals can be imported.
let package = Package(
  name: "kith-benchmarks",
  products: [
    .executable(name: "kith-bench", targets: ["Benchmarks"]),
    .executable(name: "kith-instructions", targets: ["Instructions"]),
    .executable(name: "kith-speed", targets: ["Speed"]),
  ],
  dependencies: [
    .package(name: "kith", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
  ],
  targets: [
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        internals,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),
    // Built and run by Tests/instructions.
    .executableTarget(name: "Instructions", dependencies: [internals], swiftSettings: settings),
    // Built and run by Tests/c speed, beside the same in C.
    .executableTarget(name: "Speed", dependencies: [internals], swiftSettings: settings),
    .testTarget(
      name: "BenchmarksTests", dependencies: ["Benchmarks", internals], swiftSettings: settings),
  ]
)
