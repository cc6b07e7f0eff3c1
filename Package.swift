// swift-tools-version: 6.2
import PackageDescription

let sanitized = Context.environment["CARILLON_SANITIZED"]
let isSanitized = sanitized != nil

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
    // Under the sanitizer the members of `Mutex` come from a module that the files do not import.
    isSanitized ? .define("CARILLON_SANITIZED") : .enableUpcomingFeature("MemberImportVisibility"),
]

// A trait brings what one product needs, so that an app that links one fetches and compiles nothing else.
let apple: [Platform] = [.macOS, .iOS, .tvOS, .watchOS, .visionOS]
let server: TargetDependencyCondition? = .when(traits: ["Server"])
let client: TargetDependencyCondition? = .when(traits: ["Client"])
let provider: TargetDependencyCondition? = .when(traits: ["Provider"])
let simulator: TargetDependencyCondition? = .when(traits: ["Simulator"])
let network: TargetDependencyCondition? = .when(traits: ["Client", "Provider", "Simulator"])
let cryptography: TargetDependencyCondition? = .when(traits: ["Client", "Notification", "Provider", "Simulator"])
let apns: TargetDependencyCondition? = .when(traits: ["Provider", "Simulator"])

// The products of other packages that targets use, with the traits for which they are compiled.
extension Target.Dependency {
    private static func product(
        _ name: String, _ package: String, _ condition: TargetDependencyCondition?
    ) -> Target.Dependency {
        .product(name: name, package: package, condition: condition)
    }

    static let argumentParser = product("ArgumentParser", "swift-argument-parser", server)
    static let asyncHTTPClient = product("AsyncHTTPClient", "async-http-client", server)
    static let configuration = product("Configuration", "swift-configuration", server)
    static let coreMetrics = product("CoreMetrics", "swift-metrics", provider)
    static let crypto = product("Crypto", "swift-crypto", cryptography)
    static let cryptoExtras = product("_CryptoExtras", "swift-crypto", cryptography)
    static let grdb = product("GRDB", "GRDB.swift", client)
    static let grdbSQLite = product("GRDBSQLite", "GRDB.swift", client)
    static let httpTypes = product("HTTPTypes", "swift-http-types", server)
    static let hummingbird = product("Hummingbird", "hummingbird", server)
    static let hummingbirdCore = product("HummingbirdCore", "hummingbird", server)
    static let logging = product("Logging", "swift-log", network)
    static let metrics = product("Metrics", "swift-metrics", provider)
    static let metricsTestKit = product("MetricsTestKit", "swift-metrics", provider)
    static let nioCore = product("NIOCore", "swift-nio", network)
    static let nioEmbedded = product("NIOEmbedded", "swift-nio", network)
    static let nioExtras = product("NIOExtras", "swift-nio-extras", provider)
    static let nioHPACK = product("NIOHPACK", "swift-nio-http2", apns)
    static let nioHTTP1 = product("NIOHTTP1", "swift-nio", network)
    static let nioHTTP2 = product("NIOHTTP2", "swift-nio-http2", apns)
    static let nioHTTPTypesHTTP1 = product("NIOHTTPTypesHTTP1", "swift-nio-extras", provider)
    static let nioPosix = product("NIOPosix", "swift-nio", network)
    static let nioSOCKS = product("NIOSOCKS", "swift-nio-extras", provider)
    static let nioSSL = product("NIOSSL", "swift-nio-ssl", network)
    static let nioTLS = product("NIOTLS", "swift-nio", network)
    static let nioTransportServices = product(
        "NIOTransportServices", "swift-nio-transport-services", .when(platforms: apple, traits: ["Client"]))
    static let nioWebSocket = product("NIOWebSocket", "swift-nio", network)
    static let serviceLifecycle = product("ServiceLifecycle", "swift-service-lifecycle", network)
    static let swiftASN1 = product("SwiftASN1", "swift-asn1", simulator)
    static let unixSignals = product("UnixSignals", "swift-service-lifecycle", network)
    static let x509 = product("X509", "swift-certificates", simulator)
}

let package = Package(
    name: "carillon",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "CarillonClient", targets: ["CarillonClient"]),
        .library(name: "CarillonNotification", targets: ["CarillonNotification"]),
        .library(name: "CarillonExpression", targets: ["CarillonExpression"]),
        .library(name: "CarillonAPNs", targets: ["CarillonAPNs"]),
        .library(name: "CarillonAPNsSimulator", targets: ["CarillonAPNsSimulator"]),
        .executable(name: "carillon", targets: ["CarillonCommand"]),
    ],
    traits: [
        .default(enabledTraits: ["Server"]),
        .trait(
            name: "Server", description: "Everything: the server, its command line, and all libraries.",
            enabledTraits: ["Client", "Provider", "Simulator"]),
        .trait(name: "Client", description: "CarillonClient, for apps."),
        .trait(name: "Notification", description: "CarillonNotification, for their notification service extensions."),
        .trait(name: "Provider", description: "CarillonAPNs, for those who send through Apple's push service."),
        .trait(name: "Simulator", description: "CarillonAPNsSimulator, for their tests."),
    ],
    dependencies: [
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
        .package(url: "https://github.com/apple/swift-nio-transport-services", from: "1.28.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
    ],
    targets: [
        .target(name: "CarillonBasics", swiftSettings: settings),
        .target(name: "CarillonExpression", swiftSettings: settings),
        .target(
            name: "CarillonWire",
            dependencies: ["CarillonBasics", .crypto],
            swiftSettings: settings),
        .target(
            name: "CarillonCore",
            dependencies: [
                "CarillonBasics", "CarillonExpression", "CarillonWire", .crypto, .cryptoExtras, .logging, .metrics,
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonSQLite",
            dependencies: [
                "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire", .crypto, .grdb, .grdbSQLite,
                .metrics,
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonServer",
            dependencies: [
                "CarillonAPNs", "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonMessages", "CarillonWire",
                .crypto, .httpTypes, .hummingbird, .hummingbirdCore, .coreMetrics, .logging, .metrics, .nioCore, .nioHTTP1,
                .nioHTTPTypesHTTP1, .nioPosix, .nioSSL, .nioTLS, .serviceLifecycle,
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonMessages",
            dependencies: ["CarillonBasics", "CarillonWire", .crypto],
            swiftSettings: settings),
        .target(
            name: "CarillonNotification", dependencies: ["CarillonBasics", "CarillonMessages", "CarillonWire"],
            swiftSettings: settings),
        .target(
            name: "CarillonClient",
            dependencies: [
                "CarillonBasics", "CarillonExpression", "CarillonMessages", "CarillonWire", .crypto, .grdb, .logging,
                .nioCore, .nioHTTP1, .nioPosix, .nioSSL, .nioTransportServices, .nioWebSocket, .serviceLifecycle,
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonAPNs",
            dependencies: [
                "CarillonBasics", .crypto, .logging, .metrics, .nioCore, .nioExtras, .nioHPACK, .nioHTTP1, .nioPosix,
                .nioSOCKS, .nioSSL, .nioTLS, .serviceLifecycle,
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonAPNsSimulator",
            dependencies: [
                "CarillonBasics", .crypto, .cryptoExtras, .nioCore, .nioHPACK, .nioHTTP1, .nioPosix, .nioSSL, .nioTLS,
                .swiftASN1, .x509,
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "CarillonCommand",
            dependencies: [
                "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCore",
                "CarillonExpression", "CarillonSQLite", "CarillonServer", "CarillonWire", .argumentParser, .asyncHTTPClient,
                .configuration, .crypto, .logging, .nioCore, .nioHTTP1, .nioPosix, .nioSSL, .serviceLifecycle, .unixSignals,
            ],
            swiftSettings: settings),
        // It measures what `package` declarations do, so that it belongs to this package.
        .executableTarget(
            name: "ItemBench", dependencies: ["CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire"],
            path: "Benchmarks/ItemBench", swiftSettings: settings),
        // The other benchmarks use what is public, as programs of others do.
        .executableTarget(
            name: "carillon-bench",
            dependencies: [
                "APNsFigures", "CarillonClient", "CarillonExpression", .argumentParser, .crypto, .nioCore, .nioPosix,
            ],
            path: "Benchmarks/CarillonBench", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "apns-load", dependencies: ["APNsFigures", "CarillonAPNs", .argumentParser, .logging],
            path: "Benchmarks/APNsLoad", packageAccess: false, swiftSettings: settings),
        .target(name: "APNsFigures", path: "Benchmarks/APNsFigures", packageAccess: false, swiftSettings: settings),
        .executableTarget(
            name: "ClientQuickStart", dependencies: ["CarillonClient"], path: "Examples/ClientQuickStart",
            swiftSettings: settings),
        .target(
            name: "ClientContent",
            dependencies: ["CarillonClient", .grdb],
            path: "Examples/ClientContent", swiftSettings: settings),
        .executableTarget(
            name: "ClientService",
            dependencies: ["CarillonClient", .logging, .serviceLifecycle, .unixSignals],
            path: "Examples/ClientService", swiftSettings: settings),
        .target(
            name: "TestSupport",
            dependencies: ["CarillonBasics", .crypto, .cryptoExtras, .logging],
            path: "Tests/TestSupport", swiftSettings: settings),
        .target(
            name: "StoreConformance",
            dependencies: [
                "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire", "TestStores", "TestSupport",
            ],
            path: "Tests/StoreConformance", swiftSettings: settings),
        // Changes a store until a test kills the process.
        .executableTarget(
            name: "StoreWorkload",
            dependencies: [
                "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire", "TestStores", "TestSupport",
            ],
            path: "Tests/StoreWorkload", swiftSettings: settings),
        .target(
            name: "TestStores", dependencies: ["CarillonCore", "CarillonSQLite", "TestSupport"], path: "Tests/TestStores",
            swiftSettings: settings),
        .testTarget(
            name: "CarillonBasicsTests",
            dependencies: ["TestSupport", "CarillonBasics", .crypto],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonExpressionTests", dependencies: ["CarillonExpression", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "CarillonWireTests", dependencies: ["TestSupport", "CarillonBasics", "CarillonWire"],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonCoreTests",
            dependencies: [
                "TestStores", "TestSupport", "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire", .crypto,
                .cryptoExtras,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonSQLiteTests",
            dependencies: [
                "StoreConformance", "TestStores", "TestSupport", "CarillonCore", "CarillonSQLite", "CarillonWire", .crypto,
                .grdb, .logging, .metrics, .metricsTestKit,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonNotificationTests",
            dependencies: [
                "CarillonBasics", "CarillonClient", "CarillonMessages", "CarillonNotification", "CarillonWire",
                "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonClientTests",
            dependencies: [
                "ClientContent", "TestSupport", "CarillonBasics", "CarillonClient", "CarillonMessages", "CarillonWire",
                .grdb,
                .logging, .nioCore, .nioHTTP1, .nioPosix, .nioSSL, .nioWebSocket, .serviceLifecycle,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonServerTests",
            dependencies: [
                "TestStores", "TestSupport", "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient",
                "CarillonCore", "CarillonMessages", "CarillonServer", "CarillonWire", .asyncHTTPClient, .crypto, .httpTypes,
                .hummingbird, .logging, .nioCore, .nioEmbedded, .nioHTTP1, .nioPosix, .nioSSL, .nioWebSocket,
                .serviceLifecycle, .swiftASN1, .x509,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonAPNsTests",
            dependencies: [
                "TestSupport", "CarillonAPNs", "CarillonAPNsSimulator", .crypto, .logging, .metricsTestKit, .nioCore,
                .nioHPACK, .nioHTTP2, .nioPosix, .nioSOCKS, .nioSSL, .serviceLifecycle, .swiftASN1, .unixSignals, .x509,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonAPNsSimulatorTests",
            dependencies: ["TestSupport", "CarillonAPNsSimulator", .crypto, .nioCore, .nioHPACK, .nioPosix],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonCommandTests",
            dependencies: [
                "TestSupport", "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient",
                "CarillonCommand",
                "CarillonCore", "CarillonServer", .argumentParser, .asyncHTTPClient, .crypto, .logging, .nioCore, .nioHTTP1,
                .nioPosix, .nioSSL,
            ],
            swiftSettings: settings),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCommand", "CarillonNotification",
                "CarillonWire", "ClientContent", "StoreWorkload", "TestStores", "TestSupport", .crypto, .asyncHTTPClient,
                .nioCore, .nioHTTP1,
            ],
            exclude: ["Interop"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)

// The thread sanitizer builds the rooms with their tests, and a Mutex that it can see. What is left out are processes: the
// executable, what starts it, the benchmarks, and the example; and with `CARILLON_SANITIZED=core` what needs sockets.
if isSanitized {
    package.products = []
    let withoutSockets = ["CarillonBasics", "CarillonWire", "CarillonCore", "CarillonSQLite"]
    package.targets.removeAll { target in
        if sanitized == "core" {
            return !["CarillonExpression", "TestSupport", "TestStores", "StoreConformance"].contains(target.name)
                && !withoutSockets.contains { target.name == $0 || target.name == $0 + "Tests" }
        }
        return target.path?.hasPrefix("Benchmarks/") == true
            || ["CarillonCommand", "CarillonCommandTests", "ClientQuickStart", "EndToEndTests", "StoreWorkload"].contains(
                target.name)
    }
    for target in package.targets {
        target.dependencies.append("SanitizedMutex")
        target.plugins = [.plugin(name: "MutexAlias")]
    }
    package.targets += [
        .target(name: "SanitizedMutex", exclude: ["Alias"], swiftSettings: [.swiftLanguageMode(.v5)]),
        .plugin(name: "MutexAlias", capability: .buildTool()),
    ]
}
