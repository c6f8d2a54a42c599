// swift-tools-version: 6.2

import PackageDescription

let kith = Target.Dependency.product(name: "Kith", package: "kith")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let lifecycle = Target.Dependency.product(
  name: "ServiceLifecycle", package: "swift-service-lifecycle")

let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .treatAllWarnings(as: .error),
]

// Programs to copy from. `Examples/check` builds them, runs them, and shows that they work.
let package = Package(
  name: "kith-examples",
  products: [
    .executable(name: "bookmarks-classic", targets: ["BookmarksClassic"]),
    .executable(name: "bookmarks-modern", targets: ["BookmarksModern"]),
    .executable(name: "preferences", targets: ["Preferences"]),
    .executable(name: "service", targets: ["ServiceExample"]),
  ],
  dependencies: [
    .package(name: "kith", path: ".."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // What all of them ask of the command line: which device this is, and where the others are.
    .target(name: "ExampleDevice", dependencies: [kith, arguments], swiftSettings: strict),
    // As it would have been written for Apple's class, Swift 5 mode included.
    .executableTarget(
      name: "BookmarksClassic",
      dependencies: [.product(name: "UbiquitousKeyValueStore", package: "kith")],
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .executableTarget(
      name: "BookmarksModern", dependencies: ["ExampleDevice", kith, arguments],
      swiftSettings: strict),
    .executableTarget(
      name: "Preferences",
      dependencies: [
        "ExampleDevice", kith, arguments, lifecycle,
        .product(name: "KithUserDefaults", package: "kith"),
      ],
      swiftSettings: strict),
    // The programs of README, word for word; a test compares them.
    .executableTarget(name: "ReadmeModern", dependencies: [kith], swiftSettings: strict),
    .executableTarget(
      name: "ReadmeClassic",
      dependencies: [.product(name: "UbiquitousKeyValueStore", package: "kith")],
      swiftSettings: strict),
    .executableTarget(
      name: "ServiceExample",
      dependencies: [
        "ExampleDevice", kith, arguments, lifecycle,
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
      ],
      swiftSettings: strict),
  ]
)
