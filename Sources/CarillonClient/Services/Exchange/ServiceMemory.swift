import CarillonWire

/// What the storage has of keys, others and calls, kept at hand as long as the device and its user are the same.
struct ServiceMemory {
    struct Owner: Hashable {
        var device: String?
        var user: String?
    }

    private struct PeerOfUser: Hashable {
        var peer: ServicePeer
        var user: String?
    }

    var owner: Owner
    /// Until when they are good, they say.
    var keys: OwnKeys?
    /// The present key, signed for others.
    var bundle: KeyBundle?
    private var believed: [PeerOfUser: KeyBundle] = [:]
    /// First identities that the app accepted, and that may not be stored yet.
    private var verified: [PeerOfUser: [UInt8]] = [:]
    /// The users that the app named for devices, where this device is a server.
    private(set) var namedUsers: [String: String] = [:]
    /// When the storage last noted that the server vouched for a device.
    private var vouchedAt: [String: Int64] = [:]
    var calls: [String: StoredCall] = [:]

    private static let mostBelieved = 256

    init(owner: Owner) { self.owner = owner }

    func isBelieved(_ bundle: KeyBundle, of peer: ServicePeer, user: String?) -> Bool {
        believed[PeerOfUser(peer: peer, user: user)] == bundle
    }

    mutating func believe(_ bundle: KeyBundle, of peer: ServicePeer, user: String?) {
        if believed.count >= Self.mostBelieved { believed = [:] }
        believed[PeerOfUser(peer: peer, user: user)] = bundle
    }

    func isVerified(_ identity: [UInt8], of peer: ServicePeer, user: String?) -> Bool {
        verified[PeerOfUser(peer: peer, user: user)] == identity
    }

    mutating func verify(_ identity: [UInt8], of peer: ServicePeer, user: String?) {
        if verified.count >= Self.mostBelieved { verified = [:] }
        verified[PeerOfUser(peer: peer, user: user)] = identity
    }

    /// The app asked for devices of a user. If it asked for too many, the first ones are known by their device alone again.
    mutating func name(_ user: String, of device: String) {
        if namedUsers.count >= Self.mostNamed { namedUsers = [:] }
        namedUsers[device] = user
    }

    private static let mostNamed = 10_000

    /// Answers whether that is to be noted, as it is not each time.
    mutating func vouch(_ device: String, at now: Int64) -> Bool {
        guard now - (vouchedAt[device] ?? 0) > Self.vouchingMilliseconds else { return false }
        if vouchedAt.count >= Self.mostBelieved { vouchedAt = [:] }
        vouchedAt[device] = now
        return true
    }

    private static let vouchingMilliseconds: Int64 = 3_600_000

    mutating func forgetBelieved() { (believed, verified) = ([:], [:]) }
}

extension ServiceEngine {
    nonisolated var presentOwner: ServiceMemory.Owner {
        let scope = runner.updateScope
        return .init(device: scope.identity?.device, user: scope.user)
    }

    /// Nothing of it is another user's.
    var ownMemory: ServiceMemory {
        get {
            let owner = presentOwner
            return memory.owner == owner ? memory : ServiceMemory(owner: owner)
        }
        set { memory = newValue }
    }

    /// The own keys, and the present one as others get it.
    ///
    /// - Throws: ``ServiceError`` with ``ServiceError/Code/callForbidden`` where the device is not registered.
    func keysForOthers() async throws -> (keys: OwnKeys, bundle: KeyBundle) {
        guard let own = ownPeer else { throw ServiceError(.callForbidden, "The device is not registered.") }
        let now = Self.now
        if let keys = ownMemory.keys, let bundle = ownMemory.bundle, keys.key.validUntil > now { return (keys, bundle) }
        let owner = presentOwner
        let keys = try await box.keys(at: now)
        let bundle = try keys.bundle(of: own.device)
        if owner == presentOwner { (ownMemory.keys, ownMemory.bundle) = (keys, bundle) }
        return (keys, bundle)
    }

    func ownKey(named name: String) async throws -> OwnKey? {
        if let key = ownMemory.keys?.key, key.name == name { return key }
        return try await box.key(named: name)
    }

    /// The server brought something of a device, or named it.
    func vouch(for peer: ServicePeer) async throws {
        let now = Self.now
        guard local != nil, ownMemory.vouch(peer.device, at: now) else { return }
        try await box.vouch(peer.device, at: now)
    }

    /// What this device asked, and has no result of.
    func call(_ id: String) async throws -> StoredCall? {
        if let call = ownMemory.calls[id] { return call }
        return try await box.call(id)
    }

    /// It has its result, or will have none.
    ///
    /// - Returns: False when it had one before.
    @discardableResult
    func finishCall(_ id: String, event number: Int64? = nil) async throws -> Bool {
        ownMemory.calls[id] = nil
        outgoing.cancelTimer(of: id)
        return try await box.finish(id, event: number)
    }
}
