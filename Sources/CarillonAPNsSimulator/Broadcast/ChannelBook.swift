/// The broadcast channels of all apps.
struct ChannelBook: Sendable {
    struct Owner: Hashable, Sendable {
        var bundleID: String
        var environment: Environment
    }

    private static let sentLimit = 100

    private var channels: [Owner: [String: BroadcastChannel]] = [:]

    var all: [BroadcastChannel] { channels.values.flatMap(\.values).sorted { $0.id < $1.id } }

    func count(of owner: Owner) -> Int { channels[owner]?.count ?? 0 }

    func identifiers(of owner: Owner) -> [String] { (channels[owner] ?? [:]).keys.sorted() }

    func channel(_ id: String, of owner: Owner) -> BroadcastChannel? { channels[owner]?[id] }

    mutating func create(_ id: String, of owner: Owner, storesMessages: Bool) {
        channels[owner, default: [:]][id] = BroadcastChannel(
            id: id, bundleID: owner.bundleID, environment: owner.environment, storesMessages: storesMessages, sent: [])
    }

    mutating func delete(_ id: String, of owner: Owner) -> Bool { channels[owner]?.removeValue(forKey: id) != nil }

    mutating func sent(_ payload: [UInt8], to id: String, of owner: Owner) {
        guard var channel = channels[owner]?[id] else { return }
        channel.sent.append(payload)
        if channel.sent.count > Self.sentLimit { channel.sent.removeFirst() }
        channels[owner]?[id] = channel
    }
}
