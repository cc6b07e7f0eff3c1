// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "carillon-benchmarks",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "carillon-bench", targets: ["CarillonBench"]),
        .executable(name: "apns-load", targets: ["APNsLoad"]),
    ],
    dependencies: [
        // Of all that it depends on, only what CarillonAPNs and CarillonClient need is compiled.
        .package(name: "carillon", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .executableTarget(
            name: "CarillonBench",
            dependencies: [
                "APNsFigures",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "CarillonClient", package: "carillon"),
                .product(name: "CarillonExpression", package: "carillon"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "APNsLoad",
            dependencies: [
                "APNsFigures",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "CarillonAPNs", package: "carillon"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .target(name: "APNsFigures", swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
