import CarillonCore
import CarillonWire
import HTTPTypes
import Testing

@testable import CarillonServer

/// What each case of ``RouteHome`` makes of a request.
@Suite(.timeLimit(.minutes(5)))
struct HomeFinderTests {
    private struct Example {
        var home: RouteHome
        var names: RequestNames
        /// The number of the shard; nil if no home decides.
        var shard: UInt16?
    }

    private let finder = HomeFinder(
        tokens: TokenSealer(keys: [TokenKey(id: 1, bytes: Array(repeating: 7, count: 32))], random: .system))

    /// Returns the token of a channel of a device whose serial has the shard.
    private func token(in shard: Int64) throws -> String {
        try finder.tokens.seal(.init(device: DeviceSerial(1 << 40 | shard), channel: ChannelSerial(1)))
    }

    private static func names(_ parameter: String, _ value: String, of app: AppSerial? = nil) -> RequestNames {
        RequestNames(path: [parameter: value], app: app)
    }

    private func examples() throws -> [Example] {
        let app = AppSerial(1)
        let game = try #require(AppID("com.example.app"))
        let device = DeviceID(Bytes16(high: 1, low: UInt64.max - 3))
        let credential = DeviceCredential(
            device: device, secret: Array(repeating: 9, count: DeviceCredential.secretByteCount))
        let message = MessageID(position: 1 << 50 | 1023, secret: Bytes16(high: .max, low: 2))
        let attachment = AttachmentID(Bytes16(high: 1, low: 2))
        return [
            Example(home: .tokenInPath, names: Self.names("token", try token(in: 5)), shard: 5),
            Example(home: .tokenInField, names: RequestNames(token: try token(in: 0)), shard: 0),
            Example(home: .message, names: Self.names("id", message.description), shard: 1023),
            Example(home: .device, names: Self.names("device", device.description), shard: 1020),
            Example(home: .credential, names: RequestNames(bearer: credential.text), shard: 1020),
            Example(
                home: .newDevice, names: RequestNames(registration: (app: game, secret: SecretHash(of: "secret".utf8))),
                shard: 812),
            Example(home: .item, names: Self.names("item", "stock.ACME", of: app), shard: 405),
            Example(home: .item, names: Self.names("item", "stock%2EACME", of: app), shard: 405),
            Example(home: .appInPath, names: Self.names("app", "com.example.app", of: app), shard: 632),
            Example(home: .appOfSender, names: RequestNames(bearer: "car_sender_1_2", app: app), shard: 632),
            Example(home: .attachment, names: Self.names("attachment", attachment.description), shard: 874),
            // The names that other cases read do not decide here.
            Example(home: .process, names: Self.names("app", "com.example.app", of: app), shard: nil),
            Example(home: .registry, names: Self.names("app", "com.example.app", of: app), shard: nil),
            Example(home: .store, names: Self.names("app", "com.example.app", of: app), shard: nil),
            Example(home: .newAttachment, names: RequestNames(bearer: credential.text), shard: nil),
            Example(home: .newDevice, names: RequestNames(bearer: "car_client_1_2", app: app), shard: nil),
        ]
    }

    @Test func `each case leads to one shard, to none, or to several`() throws {
        let examples = try examples()
        for example in examples {
            let expected: HomeFinder.Place = example.shard.map { .home(of: Shard(number: $0)) } ?? .here
            #expect(finder.place(of: example.names, by: example.home) == expected, "\(example.home)")
        }
        let names = RequestNames(token: try token(in: 5), app: AppSerial(1))
        #expect(finder.place(of: names, by: .eachHome) == .eachHome)
        #expect(finder.place(of: names, by: .parts) == .homesOfParts)
        #expect(Set(examples.map { $0.home }).union([.eachHome, .parts]) == Set(RouteHome.allCases))
    }

    @Test func `each part of a divided request has a shard of its own`() throws {
        let shards = try ([7, 8, 7] as [Int64]).map { finder.shard(ofToken: try token(in: $0))?.number }
        #expect(shards == [7, 8, 7])
        #expect(finder.shard(ofToken: "garbage") == nil)
        let items = ["stock.ACME", "a"].map { Shard(of: AppSerial(1), item: $0).number }
        #expect(items == [405, 515])
    }

    @Test(arguments: RouteHome.allCases)
    func `a request whose names cannot be read is answered where it arrives`(home: RouteHome) {
        let expected: HomeFinder.Place =
            switch home {
            case .eachHome: .eachHome
            case .parts: .homesOfParts
            default: .here
            }
        let garbage = ["token", "id", "device", "attachment", "app"].map { ($0, "garbage") } + [("item", "%00")]
        let unreadable = RequestNames(
            path: Dictionary(uniqueKeysWithValues: garbage), token: String(repeating: "A", count: 60), bearer: "garbage")
        #expect(finder.place(of: unreadable, by: home) == expected)
        #expect(finder.place(of: RequestNames(), by: home) == expected)
        guard home == .item else { return }
        for item in ["%00", "%", ""] {
            #expect(finder.place(of: Self.names("item", item, of: AppSerial(1)), by: home) == .here)
        }
        #expect(finder.place(of: Self.names("item", "stock.ACME"), by: home) == .here)
    }

    @Test func `all that names a device leads to the shard of the device that a server stored`() async throws {
        let routes = try await RouteFixture()
        let made = try await routes.device()
        let opened = try await routes.request(
            .post, "/v1/device/channels", key: made.credential, #"{"channelID":"11111111-2222-4333-8444-555555555555"}"#)
        let channel = try await routes.domain.publisher.channel(of: opened["token"])
        let message = try await routes.domain.publisher.publish(
            PublishRequest(body: [1], coding: ContentCoding(.identity), ttl: 60), to: channel)
        let id = try #require(DeviceID(made.id))
        let device = try #require(try await routes.store.device(id))
        let keys = try await KeyRing.open(routes.store, wrappedBy: nil, .system)
        let finder = HomeFinder(tokens: TokenSealer(keys: keys, random: .system))
        let home = HomeFinder.Place.home(of: Shard(of: device.serial))
        #expect(finder.place(of: Self.names("token", opened["token"]), by: .tokenInPath) == home)
        #expect(finder.place(of: RequestNames(token: opened["token"]), by: .tokenInField) == home)
        #expect(finder.place(of: Self.names("id", message.id.description), by: .message) == home)
        #expect(finder.place(of: RequestNames(bearer: made.credential), by: .credential) == home)
        #expect(finder.place(of: Self.names("device", made.id), by: .device) == home)
    }
}
