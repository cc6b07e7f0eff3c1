import CarillonWire

/// A cache of the stored keys, identities and calls, as long as the device and its user are the same.
struct ServiceCache {
    struct Owner: Hashable {
        var device: String?
        var user: String?
    }

    private struct PeerOfUser: Hashable {
        var peer: ServicePeer
        var user: String?
    }

    var owner: Owner
    /// The own keys, with their expiry.
    var keys: DeviceKeys?
    /// The present key, signed for other devices.
    var bundle: KeyBundle?
    private var trusted: [PeerOfUser: KeyBundle] = [:]
    /// First identities that the app accepted, and that may not be stored yet.
    private var verified: [PeerOfUser: [UInt8]] = [:]
    /// The users of other devices that the app named in searches, if this device is a server.
    private(set) var namedUsers: [String: String] = [:]
    /// The time of the last record in the storage that the server reported a device.
    private var authorizedAt: [String: Int64] = [:]
    var calls: [String: StoredCall] = [:]

    private static let mostEntries = 256

    init(owner: Owner) { self.owner = owner }

    func isTrusted(_ bundle: KeyBundle, of peer: ServicePeer, user: String?) -> Bool {
        trusted[PeerOfUser(peer: peer, user: user)] == bundle
    }

    mutating func trust(_ bundle: KeyBundle, of peer: ServicePeer, user: String?) {
        if trusted.count >= Self.mostEntries { trusted = [:] }
        trusted[PeerOfUser(peer: peer, user: user)] = bundle
    }

    func isVerified(_ identity: [UInt8], of peer: ServicePeer, user: String?) -> Bool {
        verified[PeerOfUser(peer: peer, user: user)] == identity
    }

    mutating func verify(_ identity: [UInt8], of peer: ServicePeer, user: String?) {
        if verified.count >= Self.mostEntries { verified = [:] }
        verified[PeerOfUser(peer: peer, user: user)] = identity
    }

    /// Records the user of a device that a search for this user found. Beyond the limit all earlier records are removed.
    mutating func name(_ user: String, of device: String) {
        if namedUsers.count >= Self.mostNamed { namedUsers = [:] }
        namedUsers[device] = user
    }

    private static let mostNamed = 10_000

    /// Returns whether the storage must record the report of the server, which is recorded once an hour.
    mutating func renewsAuthorization(of device: String, at now: Int64) -> Bool {
        guard now - (authorizedAt[device] ?? 0) > Self.authorizationMilliseconds else { return false }
        if authorizedAt.count >= Self.mostEntries { authorizedAt = [:] }
        authorizedAt[device] = now
        return true
    }

    private static let authorizationMilliseconds: Int64 = 3_600_000

    mutating func clearTrust() { (trusted, verified) = ([:], [:]) }
}

extension ServiceEngine {
    nonisolated var presentOwner: ServiceCache.Owner {
        let scope = runner.session.updateScope
        return .init(device: scope.identity?.device, user: scope.user)
    }

    /// The cache of the present device and user. It contains no data of another user.
    var ownCache: ServiceCache {
        get {
            let owner = presentOwner
            return cache.owner == owner ? cache : ServiceCache(owner: owner)
        }
        set { cache = newValue }
    }

    /// Returns the own keys, and the present one in its form for other devices.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/callForbidden`` if the device is not registered.
    func keysForOthers() async throws -> (keys: DeviceKeys, bundle: KeyBundle) {
        guard let own = ownPeer else { throw ServiceError(.callForbidden, "The device is not registered.") }
        let now = Self.now
        if let keys = ownCache.keys, let bundle = ownCache.bundle, keys.key.validUntil > now { return (keys, bundle) }
        let owner = presentOwner
        let keys = try await box.keys(at: now)
        let bundle = try keys.bundle(of: own.device)
        if owner == presentOwner { (ownCache.keys, ownCache.bundle) = (keys, bundle) }
        return (keys, bundle)
    }

    func agreementKey(named name: String) async throws -> AgreementKey? {
        if let key = ownCache.keys?.key, key.name == name { return key }
        return try await box.key(named: name)
    }

    /// Records that the server delivered a message of a device, or listed the device.
    func authorizeLocalRequests(of peer: ServicePeer) async throws {
        let now = Self.now
        guard local != nil, ownCache.renewsAuthorization(of: peer.device, at: now) else { return }
        try await box.authorizeLocalRequests(of: peer.device, at: now)
    }

    /// Returns a request of this device that has no result yet.
    func call(_ id: String) async throws -> StoredCall? {
        if let call = ownCache.calls[id] { return call }
        return try await box.call(id)
    }

    /// Ends a request with or without a result.
    ///
    /// - Returns: False if it had ended before.
    @discardableResult
    func finishCall(_ id: String, event number: Int64? = nil) async throws -> Bool {
        ownCache.calls[id] = nil
        outgoing.cancelTimer(of: id)
        return try await box.finish(id, event: number)
    }
}
