/// The relation between an identity and the known identities of a device.
enum PeerTrust: Equatable, Sendable {
    case first
    case known
    /// The identity differs from the accepted one. `isNew` is false if it was seen before.
    case changed(isNew: Bool)
}

/// The accepted identities of one other device, one for each of its users.
///
/// A device with a user calls, and is called by, only devices of that user. Therefore its own user is the user of the other
/// device. A device without a user is a server: it receives the user with each request, and sets the user of a provider that it
/// searched by user. The Carillon server reports the user. A reported user never replaces an identity: another identity for a
/// pinned user is `changed` until the app accepts it.
struct PeerPins: Equatable, Sendable {
    struct Pin: Equatable, Sendable {
        /// Empty if no user was known. The identity counts for each user without a pin.
        var user: String
        var identity: [UInt8]
        /// Another identity that the device has presented since; nil if there was no other.
        var offered: [UInt8]?
        /// The time when the other identity was presented, in milliseconds since 1970.
        var offeredAt: Int64 = 0
        var pinnedAt: Int64
    }

    /// The user of this device; empty if it has none.
    var ownUser: String
    /// The pins in the order in which they were made.
    var pins: [Pin] = []

    /// Returns the user whose identity the device must have.
    ///
    /// - Parameter reportedUser: The user of a request, or the user that the app set; nil if neither is known.
    private func user(_ reportedUser: String?) -> String {
        if !ownUser.isEmpty { return ownUser }
        return reportedUser ?? pins.first?.user ?? ""
    }

    /// The pins for the present user of this device.
    var visible: [Pin] {
        guard !ownUser.isEmpty else { return pins }
        if let own = pins.first(where: { $0.user == ownUser }) { return [own] }
        return pins.filter(\.user.isEmpty)
    }

    /// Compares the identity that the device presents. If no user is known, the identity of any user of the device counts.
    mutating func presented(_ identity: [UInt8], reportedUser: String?, at now: Int64) -> PeerTrust {
        if ownUser.isEmpty, reportedUser == nil, pins.contains(where: { $0.identity == identity }) { return .known }
        let user = user(reportedUser)
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

    /// Accepts the newest other identity, or the one with a fingerprint.
    ///
    /// - Returns: Whether there is such an identity.
    mutating func accepted(_ hasFingerprint: ([UInt8]) -> Bool = { _ in true }) -> Bool {
        let users = Set(visible.map(\.user))
        let offered = pins.indices.filter { users.contains(pins[$0].user) && pins[$0].offered.map(hasFingerprint) == true }
        guard let place = offered.max(by: { pins[$0].offeredAt < pins[$1].offeredAt }), let identity = pins[place].offered
        else { return false }
        (pins[place].identity, pins[place].offered, pins[place].offeredAt) = (identity, nil, 0)
        return true
    }
}
