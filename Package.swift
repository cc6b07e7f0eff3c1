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
            dependencies: ["CarillonBasics", .product(name: "Crypto", package: "swift-crypto", condition: cryptography)],
            swiftSettings: settings),
        .target(
            name: "CarillonCore",
            dependencies: [
                "CarillonBasics", "CarillonExpression", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "_CryptoExtras", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "Metrics", package: "swift-metrics", condition: provider),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CarillonSQLite",
            dependencies: [
                "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "GRDB", package: "GRDB.swift", condition: client),
                .product(name: "GRDBSQLite", package: "GRDB.swift", condition: client),
                .product(name: "Metrics", package: "swift-metrics", condition: provider),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CarillonServer",
            dependencies: [
                "CarillonAPNs", "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonMessages", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: server),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: server),
                .product(name: "CoreMetrics", package: "swift-metrics", condition: provider),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "Metrics", package: "swift-metrics", condition: provider),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: provider),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "NIOTLS", package: "swift-nio", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CarillonMessages",
            dependencies: [
                "CarillonBasics", "CarillonWire", .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
            ],
            swiftSettings: settings),
        .target(
            name: "CarillonNotification", dependencies: ["CarillonBasics", "CarillonMessages", "CarillonWire"],
            swiftSettings: settings),
        .target(
            name: "CarillonClient",
            dependencies: [
                "CarillonBasics", "CarillonExpression", "CarillonMessages", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "GRDB", package: "GRDB.swift", condition: client),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(
                    name: "NIOTransportServices", package: "swift-nio-transport-services",
                    condition: .when(platforms: apple, traits: ["Client"])),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CarillonAPNs",
            dependencies: [
                "CarillonBasics", .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "Metrics", package: "swift-metrics", condition: provider),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOExtras", package: "swift-nio-extras", condition: provider),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: apns),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSOCKS", package: "swift-nio-extras", condition: provider),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "NIOTLS", package: "swift-nio", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CarillonAPNsSimulator",
            dependencies: [
                "CarillonBasics", .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "_CryptoExtras", package: "swift-crypto", condition: cryptography),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: apns),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "NIOTLS", package: "swift-nio", condition: network),
                .product(name: "SwiftASN1", package: "swift-asn1", condition: simulator),
                .product(name: "X509", package: "swift-certificates", condition: simulator),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "CarillonCommand",
            dependencies: [
                "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCore",
                "CarillonExpression", "CarillonSQLite", "CarillonServer", "CarillonWire",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: server),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "Configuration", package: "swift-configuration", condition: server),
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: network),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "ItemBench", dependencies: ["CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire"],
            swiftSettings: settings),
        .executableTarget(
            name: "ClientQuickStart", dependencies: ["CarillonClient"], path: "Examples/ClientQuickStart",
            swiftSettings: settings),
        .target(
            name: "ClientContent",
            dependencies: ["CarillonClient", .product(name: "GRDB", package: "GRDB.swift", condition: client)],
            path: "Examples/ClientContent", swiftSettings: settings),
        .executableTarget(
            name: "ClientService",
            dependencies: [
                "CarillonClient",
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: network),
            ],
            path: "Examples/ClientService", swiftSettings: settings),
        .target(
            name: "TestSupport",
            dependencies: [
                "CarillonBasics", .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "_CryptoExtras", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
            ],
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
            dependencies: [
                "TestSupport", "CarillonBasics",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonExpressionTests", dependencies: ["CarillonExpression", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "CarillonWireTests", dependencies: ["TestSupport", "CarillonBasics", "CarillonWire"],
            swiftSettings: settings),
        .testTarget(
            name: "CarillonCoreTests",
            dependencies: [
                "TestStores", "TestSupport", "CarillonBasics", "CarillonCore", "CarillonExpression", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "_CryptoExtras", package: "swift-crypto", condition: cryptography),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CarillonSQLiteTests",
            dependencies: [
                "StoreConformance", "TestStores", "TestSupport",
                "CarillonCore", "CarillonSQLite", "CarillonWire",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "GRDB", package: "GRDB.swift", condition: client),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "Metrics", package: "swift-metrics", condition: provider),
            ],
            swiftSettings: settings
        ),
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
                "ClientContent", "TestSupport",
                "CarillonBasics", "CarillonClient", "CarillonMessages", "CarillonWire",
                .product(name: "GRDB", package: "GRDB.swift", condition: client),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CarillonServerTests",
            dependencies: [
                "TestStores", "TestSupport",
                "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCore",
                "CarillonMessages", "CarillonServer", "CarillonWire",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: server),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
                .product(name: "SwiftASN1", package: "swift-asn1", condition: simulator),
                .product(name: "X509", package: "swift-certificates", condition: simulator),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CarillonAPNsTests",
            dependencies: [
                "TestSupport",
                "CarillonAPNs",
                "CarillonAPNsSimulator",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: provider),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: apns),
                .product(name: "NIOHTTP2", package: "swift-nio-http2", condition: apns),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSOCKS", package: "swift-nio-extras", condition: provider),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: network),
                .product(name: "SwiftASN1", package: "swift-asn1", condition: simulator),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: network),
                .product(name: "X509", package: "swift-certificates", condition: simulator),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CarillonAPNsSimulatorTests",
            dependencies: [
                "TestSupport",
                "CarillonAPNsSimulator",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: apns),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CarillonCommandTests",
            dependencies: [
                "TestSupport",
                "CarillonAPNs", "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCommand",
                "CarillonCore", "CarillonServer",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: server),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "Logging", package: "swift-log", condition: network),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
                .product(name: "NIOPosix", package: "swift-nio", condition: network),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: network),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "CarillonAPNsSimulator", "CarillonBasics", "CarillonClient", "CarillonCommand", "CarillonNotification",
                "CarillonWire", "ClientContent", "StoreWorkload", "TestStores", "TestSupport",
                .product(name: "Crypto", package: "swift-crypto", condition: cryptography),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "NIOCore", package: "swift-nio", condition: network),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: network),
            ],
            exclude: ["Interop"],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)

// The thread sanitizer builds the rooms with their tests, and a Mutex that it can see. What is left out are processes: the
// executable, what starts it, and the example; and with `CARILLON_SANITIZED=core` what needs sockets.
if isSanitized {
    package.products = []
    let withoutSockets = ["CarillonBasics", "CarillonWire", "CarillonCore", "CarillonSQLite"]
    package.targets.removeAll { target in
        if sanitized == "core" {
            return !["CarillonExpression", "TestSupport", "TestStores", "StoreConformance"].contains(target.name)
                && !withoutSockets.contains { target.name == $0 || target.name == $0 + "Tests" }
        }
        return ["CarillonCommand", "CarillonCommandTests", "ClientQuickStart", "EndToEndTests", "StoreWorkload"].contains(
            target.name)
    }
    for target in package.targets { target.dependencies.append("SanitizedMutex") }
    package.targets.append(.target(name: "SanitizedMutex", swiftSettings: [.swiftLanguageMode(.v5)]))
}
