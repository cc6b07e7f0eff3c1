/// How an identity stands to what was known of a device.
enum PeerTrust: Equatable, Sendable {
    case first
    case known
    /// It is another one than was accepted; whether it was seen before.
    case changed(isNew: Bool)
}

/// The identities that are accepted for one other device, one for each of its users.
///
/// A device that belongs to a user calls, and is called by, devices of that user alone, so that its own user is the user of the other device. A
/// device without a user is a server: it receives the user with each request, and names the user of a provider that it looked for by user.
/// The server of Carillon says who the user is. A name that it says never replaces an identity: another identity for a pinned user is
/// `changed` until the app accepts it.
struct PeerPins: Equatable, Sendable {
    struct Pin: Equatable, Sendable {
        /// Empty where no user was known. The identity counts for each user that has no pin of its own.
        var user: String
        var identity: [UInt8]
        /// Another identity that the device came with since.
        var offered: [UInt8]?
        /// In milliseconds since 1970.
        var offeredAt: Int64 = 0
        var pinnedAt: Int64
    }

    /// The user of this device; empty where it has none.
    var ownUser: String
    /// In the order in which they were made.
    var pins: [Pin] = []

    /// The user whose identity the device must have.
    ///
    /// - Parameter said: The user that came with a request, or that the app named; nil: none did.
    private func user(_ said: String?) -> String {
        if !ownUser.isEmpty { return ownUser }
        return said ?? pins.first?.user ?? ""
    }

    /// The pins that are of interest to the present user of this device.
    var visible: [Pin] {
        guard !ownUser.isEmpty else { return pins }
        if let own = pins.first(where: { $0.user == ownUser }) { return [own] }
        return pins.filter(\.user.isEmpty)
    }

    /// The device came with an identity. Where no user was said, the identity of any user of the device counts.
    mutating func met(_ identity: [UInt8], said: String?, at now: Int64) -> PeerTrust {
        if ownUser.isEmpty, said == nil, pins.contains(where: { $0.identity == identity }) { return .known }
        let user = user(said)
        if !pins.contains(where: { $0.user == user }) {
            guard let earlier = pins.first(where: \.user.isEmpty) else {
                pins.append(Pin(user: user, identity: identity, pinnedAt: now))
                return .first
            }
            pins.append(Pin(user: user, identity: earlier.identity, pinnedAt: now))
        }
        guard let place = pins.firstIndex(where: { $0.user == user }), pins[place].identity != identity else {
            return .known
        }
        let isNew = pins[place].offered != identity
        (pins[place].offered, pins[place].offeredAt) = (identity, now)
        return .changed(isNew: isNew)
    }

    /// The app accepts the identity that was offered last, or the offered one that has a fingerprint.
    ///
    /// - Returns: Whether there is one.
    mutating func accepted(_ hasFingerprint: ([UInt8]) -> Bool = { _ in true }) -> Bool {
        let users = Set(visible.map(\.user))
        let offered = pins.indices.filter { users.contains(pins[$0].user) && pins[$0].offered.map(hasFingerprint) == true }
        guard let place = offered.max(by: { pins[$0].offeredAt < pins[$1].offeredAt }), let identity = pins[place].offered
        else { return false }
        (pins[place].identity, pins[place].offered, pins[place].offeredAt) = (identity, nil, 0)
        return true
    }
}
