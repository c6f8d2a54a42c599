// swift-tools-version: 6.2

import PackageDescription

/// Every target is built in Swift 6 mode with warnings as errors, and imports are internal
/// unless a file says `public import`, so that a dependency never leaks by accident.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
  .treatAllWarnings(as: .error),
]

/// The modules for programs of Apple's class are empty where Foundation has it, and must build there
/// without libsodium and all that stands on it: `Tests/apple` checks it.
let onLinux: TargetDependencyCondition? = .when(platforms: [.linux])

let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")
/// The page of `kith web`, and the example with a page. Only they need Hummingbird, and without the
/// trait no package that depends on this one fetches it. It also needs a newer macOS than modules for
/// Apple's systems may ask for.
let ofPage: TargetDependencyCondition? = .when(platforms: [.linux], traits: ["Web"])
let hummingbird = Target.Dependency.product(
  name: "Hummingbird", package: "hummingbird", condition: ofPage)
let serviceLifecycle = Target.Dependency.product(
  name: "ServiceLifecycle", package: "swift-service-lifecycle")

let package = Package(
  name: "kith",
  products: [
    .library(name: "Kith", targets: ["Kith"]),
    .library(name: "KithCarriers", targets: ["KithCarriers"]),
    .library(name: "KithCarriersTesting", targets: ["KithCarriersTesting"]),
    .library(name: "KithTesting", targets: ["KithTesting"]),
    .library(name: "KithUserDefaults", targets: ["KithUserDefaults"]),
    .library(name: "UbiquitousKeyValueStore", targets: ["UbiquitousKeyValueStore"]),
    .library(
      name: "UbiquitousKeyValueStorePorting", targets: ["UbiquitousKeyValueStorePorting"]),
    .executable(name: "kith", targets: ["kith"]),
    .executable(name: "kith-sim", targets: ["kith-sim"]),
    .executable(name: "kith-web", targets: ["kith-web"]),
    // For the nested packages of Tests, and without any promise to others.
    .library(
      name: "_KithInternals",
      targets: [
        "Kith", "KithCommands", "KithCore", "KithCrypto", "KithNetwork", "KithStorage",
        "KithTerminal", "KithTestSupport", "KithValues",
      ]),
  ],
  traits: [
    .trait(name: "Web", description: "The page of kith web, in the program kith-web.")
  ],
  dependencies: [
    // Those with `traits: []` would need all of Foundation without it.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-async-algorithms", from: "1.1.4"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
    .package(
      url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    .systemLibrary(
      name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .target(name: "KithCrypto", dependencies: ["CSodium"], swiftSettings: strict),
    .target(
      name: "KithCore",
      dependencies: [
        "KithCrypto",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      exclude: ["Wire/kith.proto", "Wire/generate.sh"],
      swiftSettings: strict),
    .systemLibrary(
      name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(
      name: "KithStorage", dependencies: ["CSQLite", "KithCore", "KithCrypto"],
      swiftSettings: strict),
    .systemLibrary(name: "CLinux"),
    .target(
      name: "KithNetwork",
      dependencies: [
        "CLinux", "KithCore", "KithCrypto",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .target(
      name: "Kith",
      dependencies: [
        "CLinux", "KithCore", "KithCrypto", "KithNetwork", "KithStorage",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        serviceLifecycle,
      ],
      swiftSettings: strict),
    // Functions over libcurl, which is loaded when a carrier needs it.
    .systemLibrary(name: "CCurl"),
    // Apart from Kith, so that programs without carriers pay nothing.
    .target(
      name: "KithCarriers",
      dependencies: [
        "CCurl", "CSodium", "Kith", "KithCrypto",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .target(name: "KithCarriersTesting", dependencies: ["Kith"], swiftSettings: strict),
    // Apart from Kith, which needs no more of Foundation than its essentials: UserDefaults is in the
    // whole of it.
    .target(
      name: "KithUserDefaults",
      dependencies: [
        "Kith", "KithCore", "KithCrypto",
        serviceLifecycle,
      ],
      swiftSettings: strict),
    .target(
      name: "UbiquitousKeyValueStore",
      dependencies: [
        .target(name: "Kith", condition: onLinux), .target(name: "KithCore", condition: onLinux),
        .product(name: "Logging", package: "swift-log", condition: onLinux),
      ],
      swiftSettings: strict),
    .target(name: "UbiquitousKeyValueStorePorting", swiftSettings: strict),
    .target(
      name: "KithCommands",
      dependencies: [
        "CLinux", "Kith", "KithCarriers", "KithCore", "KithCrypto", "KithNetwork", "KithStorage",
        "KithTerminal", "KithValues",
        argumentParser,
        .product(name: "Logging", package: "swift-log"),
        serviceLifecycle,
      ],
      swiftSettings: strict),
    .target(
      name: "KithTesting",
      dependencies: ["Kith", "KithCore", "KithCrypto"], swiftSettings: strict),
    // A bad network between real processes, for the project's own tests.
    .target(
      name: "KithProxy",
      dependencies: [
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      path: "Tests/KithProxy", swiftSettings: strict),
    .target(
      name: "KithTestSupport", dependencies: ["KithCore"], path: "Tests/KithTestSupport",
      swiftSettings: strict),
    .executableTarget(name: "kith", dependencies: ["KithCommands"], swiftSettings: strict),
    .target(name: "KithTerminal", dependencies: ["KithCore"], swiftSettings: strict),
    // Values in JSON and property lists.
    .target(
      name: "KithValues", dependencies: ["KithCore", "KithTerminal"], swiftSettings: strict),
    .target(
      name: "KithSimulator",
      dependencies: [
        "KithCore", "KithCrypto", .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .target(
      name: "KithSimulatorCommands",
      dependencies: [
        "KithSimulator", "KithTerminal",
        argumentParser,
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "kith-sim", dependencies: ["KithSimulatorCommands"], swiftSettings: strict),
    // The page of `kith web`; apart from `kith`, whose build it would make longer. Its server is compiled
    // with the trait Web only.
    .target(
      name: "KithWeb",
      dependencies: [
        "Kith", "KithCommands", "KithCore", "KithCrypto", "KithNetwork", "KithTerminal",
        "KithValues",
        hummingbird,
        .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
        .product(name: "HTTPTypes", package: "swift-http-types", condition: ofPage),
        .product(name: "HummingbirdCore", package: "hummingbird", condition: ofPage),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio", condition: ofPage),
        serviceLifecycle,
      ],
      resources: [.embedInCode("Page")], swiftSettings: strict),
    .executableTarget(
      name: "kith-web", dependencies: ["KithCommands", "KithWeb"], swiftSettings: strict),
    .testTarget(
      name: "KithWebTests",
      dependencies: [
        "KithWeb", "Kith", "KithCommands", "KithCore", "KithCrypto", "KithTestSupport",
        "KithValues",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        serviceLifecycle,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KithCryptoTests", dependencies: ["KithCrypto"],
      resources: [.copy("Vectors")], swiftSettings: strict),
    .testTarget(
      name: "KithCoreTests",
      dependencies: [
        "KithCore", "KithCrypto", "KithTestSupport",
        .product(name: "SwiftProtobuf", package: "swift-protobuf"),
      ],
      resources: [.copy("Vectors")], swiftSettings: strict),
    .testTarget(
      name: "KithStorageTests",
      dependencies: ["KithStorage", "KithCore", "KithCrypto", "KithSimulator", "KithTestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "KithNetworkTests",
      dependencies: [
        "KithNetwork", "KithCore", "KithCrypto", "KithProxy", "KithTestSupport",
        .product(name: "NIOEmbedded", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KithTests",
      dependencies: [
        "Kith", "KithCore", "KithCrypto", "KithNetwork", "KithStorage", "KithTestSupport",
        "KithUserDefaults",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "NIOPosix", package: "swift-nio"),
      ],
      swiftSettings: strict),
    // The code of README and of the guides.
    .testTarget(
      name: "KithGuideTests",
      dependencies: [
        "Kith", "KithCarriers", "KithTesting", "UbiquitousKeyValueStore",
        "UbiquitousKeyValueStorePorting", .product(name: "Logging", package: "swift-log"),
        serviceLifecycle,
      ],
      swiftSettings: strict),
    // As programs that keep to the main actor are compiled.
    .testTarget(
      name: "KithMainActorTests", dependencies: ["Kith", "KithTesting"],
      swiftSettings: strict + [.defaultIsolation(MainActor.self)]),
    .testTarget(
      name: "KithTestingTests", dependencies: ["KithTesting", "Kith"], swiftSettings: strict),
    .testTarget(
      name: "KithProxyTests",
      dependencies: [
        "KithProxy", "Kith", "KithTestSupport", .product(name: "NIOCore", package: "swift-nio"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KithUserDefaultsTests",
      dependencies: ["KithUserDefaults", "Kith", "KithTestSupport", "KithTesting"],
      swiftSettings: strict),
    .testTarget(
      name: "UbiquitousKeyValueStoreTests",
      dependencies: [
        "UbiquitousKeyValueStore", "Kith", "KithCore", "KithCrypto", "KithTestSupport",
        "KithTesting",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "UbiquitousKeyValueStorePortingTests", dependencies: ["UbiquitousKeyValueStorePorting"],
      swiftSettings: strict),
    .testTarget(
      name: "KithCommandsTests",
      dependencies: [
        "CLinux", "KithCommands", "Kith", "KithCore", "KithCrypto", "KithProxy", "KithTerminal",
        "KithTestSupport", "KithTesting", "KithValues",
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Golden"], resources: [.copy("Samples")], swiftSettings: strict),
    .testTarget(
      name: "KithCarriersTests",
      dependencies: ["Kith", "KithCarriers", "KithCarriersTesting", "KithTestSupport"],
      exclude: ["Servers"], swiftSettings: strict),
    .testTarget(
      name: "KithTerminalTests", dependencies: ["KithTerminal"], swiftSettings: strict),
    .testTarget(
      name: "KithSimulatorTests",
      dependencies: ["KithSimulator", "KithCore"],
      resources: [.copy("Schedules")], swiftSettings: strict),
  ] + examples + clients
)

// `libkith.so` for C (`Docs/C.md`), which needs `@c @implementation` of Swift 6.3.
#if compiler(>=6.3)
  package.products.append(.library(name: "KithC", type: .dynamic, targets: ["KithC"]))
  package.targets += [
    // The header, which is written by hand.
    .systemLibrary(name: "CKith"),
    .target(
      name: "KithC",
      dependencies: [
        "CKith", "CLinux", "Kith", "KithCore", "KithValues",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
  ]
#endif

/// Programs to copy from. They import and see what other packages do.
/// `Examples/check` runs them.
var examples: [Target] {
  let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"),
    .treatAllWarnings(as: .error),
  ]
  func program(
    _ name: String, in folder: String, uses dependencies: [Target.Dependency],
    resources: [Resource]? = nil
  ) -> Target {
    .executableTarget(
      name: name, dependencies: dependencies, path: "Examples/Sources/\(folder)",
      resources: resources, packageAccess: false, swiftSettings: settings)
  }
  return [
    // The options that all of them share: which device this is, and where the others are.
    .target(
      name: "ExampleDevice", dependencies: ["Kith", argumentParser],
      path: "Examples/Sources/ExampleDevice", packageAccess: false, swiftSettings: settings),
    // As it would have been written for Apple's class, Swift 5 mode included.
    .executableTarget(
      name: "bookmarks-classic", dependencies: ["UbiquitousKeyValueStore"],
      path: "Examples/Sources/BookmarksClassic", packageAccess: false,
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    program(
      "bookmarks-modern", in: "BookmarksModern", uses: ["ExampleDevice", "Kith", argumentParser]),
    program(
      "bookmarks-web", in: "BookmarksWeb",
      uses: [
        "ExampleDevice", "Kith", argumentParser, hummingbird, serviceLifecycle,
        .product(name: "Logging", package: "swift-log"),
      ],
      resources: [.embedInCode("Page")]),
    program(
      "preferences", in: "Preferences",
      uses: ["ExampleDevice", "Kith", "KithUserDefaults", argumentParser, serviceLifecycle]),
    program(
      "service", in: "ServiceExample",
      uses: [
        "ExampleDevice", "Kith", argumentParser, serviceLifecycle,
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Metrics", package: "swift-metrics"),
      ]),
    // The programs of README, word for word; a test compares them.
    program("ReadmeModern", in: "ReadmeModern", uses: ["Kith"]),
    program("ReadmeClassic", in: "ReadmeClassic", uses: ["UbiquitousKeyValueStore"]),
  ]
}

/// A program written for Apple's class, compiled in both language modes from the same files: those
/// of Client6 are links. `Tests/client` runs both.
var clients: [Target] {
  [("Client5", SwiftLanguageMode.v5), ("Client6", .v6)].map { name, mode in
    .executableTarget(
      name: name,
      dependencies: [
        "Kith", "KithTesting", "UbiquitousKeyValueStore", "UbiquitousKeyValueStorePorting",
      ],
      path: "Tests/Client/\(name)", packageAccess: false, swiftSettings: [.swiftLanguageMode(mode)])
  }
}
