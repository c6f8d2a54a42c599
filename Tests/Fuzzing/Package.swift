// swift-tools-version: 6.2

import PackageDescription

// Built by Tests/fuzz, with libFuzzer's instrumentation of everything: see README.md. Without
// `--sanitize fuzzer` the executable has no `main` and does not link.
let package = Package(
  name: "kith-fuzzing",
  dependencies: [
    .package(name: "kith", path: "../.."),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0"),
  ],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [
        .product(name: "_KithInternals", package: "kith"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      swiftSettings: [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .treatAllWarnings(as: .error),
        // libFuzzer brings `main`.
        .unsafeFlags(["-parse-as-library"]),
      ])
  ]
)
