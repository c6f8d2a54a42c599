// swift-tools-version: 6.2

import PackageDescription

// A program written for Apple's class, compiled in both language modes from the same files: those of
// Client6 are links. Tests/client builds and runs both.
let dependencies: [Target.Dependency] = [
  .product(name: "Kith", package: "kith"),
  .product(name: "KithTesting", package: "kith"),
  .product(name: "UbiquitousKeyValueStore", package: "kith"),
  .product(name: "UbiquitousKeyValueStorePorting", package: "kith"),
]

let package = Package(
  name: "kith-client",
  dependencies: [.package(name: "kith", path: "../..")],
  targets: [
    .executableTarget(
      name: "Client5", dependencies: dependencies, swiftSettings: [.swiftLanguageMode(.v5)]),
    .executableTarget(
      name: "Client6", dependencies: dependencies, swiftSettings: [.swiftLanguageMode(.v6)]),
  ]
)
