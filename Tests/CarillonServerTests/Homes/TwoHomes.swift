import CarillonCore
import CarillonWire
import Logging
import NIOPosix
import TestStores
import Testing

@testable import CarillonServer

/// A process with two homes over one store, which have one half of the shards each, and links between the homes.
struct TwoHomes {
    struct Missing: Error {}

    let store: any Store
    let shared: Domain
    let domains: [HomeDomain]
    /// How connections and the other home reach each home.
    let links: [TestLink]
    let app: App
    private let clock: SubscriptionWorld.Clock?

    static let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    static let addresses = PublicAddresses(base: "https://push.example.com")
    static var appID: AppID { get throws { try AppID.checked("com.example.app") } }

    /// Returns the place of the home that has a shard at first.
    static func place(of shard: Shard) -> Int { Int(shard.number) * 2 / Shard.count }

    /// - Parameters:
    ///   - clock: The clock that the test moves; nil for the clock of the system.
    ///   - scheduler: Ends the waits of the homes.
    init(
        _ settings: StoreSettings = StoreSettings(), items: ItemEngine.Limits = .init(),
        attachmentFiles: any AttachmentFiles = NoAttachmentFiles(), clock: SubscriptionWorld.Clock? = .init(),
        scheduler: Scheduler = .on(MultiThreadedEventLoopGroup.singleton)
    ) async throws {
        var configuration = HomeDomain.Configuration(
            addresses: Self.addresses.publicURLs, scheduler: scheduler, logger: Self.logger,
            itemLimits: items, attachmentFiles: attachmentFiles)
        if let time = clock?.time {
            configuration.time = time
            configuration.ticks = TickSource { time.now().milliseconds * 1_000_000 }
        }
        store = try await stores.open(settings)
        var links: [TestLink] = []
        (shared, domains) = try await HomeDomain.open(store, configuration, homes: 2) { home in
            links.append(TestLink(to: home))
            return links[links.count - 1]
        }
        for link in links { link.connect(shared.homes) }
        app = try await shared.apps.create(try Self.appID)
        (self.links, self.clock) = (links, clock)
    }

    // MARK: Time

    var now: Timestamp { shared.time.now() }

    func advance(seconds: Int64) { clock?.advance(seconds: seconds) }

    // MARK: Places

    var homes: Homes { shared.homes }

    /// Returns the present place of a shard.
    func place(of shard: Shard) -> Int { homes.home(of: shard) === links[0] ? 0 : 1 }

    /// Returns the home that has a device at present.
    func domain(of device: Device) -> HomeDomain { domains[place(of: Shard(of: device.serial))] }

    /// Returns an item of a home.
    ///
    /// - Parameter excluded: The item is not in this shard.
    func item(at place: Int, _ name: String = "i", outside excluded: Shard? = nil) throws -> ItemKey {
        let found = (0..<100).map { "\(name)\($0)" }.first { text in
            let shard = Shard(of: app.serial, item: text)
            return Self.place(of: shard) == place && shard != excluded
        }
        return ItemKey(app: app.serial, name: try #require(found.flatMap { ItemName($0) }))
    }
}
