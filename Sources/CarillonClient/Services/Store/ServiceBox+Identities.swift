import CarillonWire
import Crypto
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The identities of other devices, as they were first seen or accepted.
extension ServiceBox {
    /// Notes the identity that a device comes with: at first it is accepted.
    ///
    /// - Parameters:
    ///   - user: The user of the device, where this device is a server and knows it: see ``PeerPins``.
    ///   - acceptsFirst: Whether a first identity is stored. Without it the app has not decided yet.
    func standing(
        of peer: ServicePeer, _ identity: [UInt8], user: String?, at now: Int64, acceptsFirst: Bool = true
    ) async throws(PushError) -> PeerTrust {
        try await change(peer.device, peer.app) { pins in
            var present = pins
            let standing = present.met(identity, said: user, at: now)
            if standing != .first || acceptsFirst { pins = present }
            return standing
        }
    }

    /// The identity that was seen last is the device's from now on.
    ///
    /// - Parameter fingerprint: The identity has this fingerprint; nil: whichever it has.
    /// - Returns: False when there is no such identity but the accepted one.
    func accept(_ device: String, fingerprint: String? = nil) async throws(PushError) -> Bool {
        try await change(device) { pins in
            pins.accepted { identity in fingerprint.map { Fingerprint.text(of: identity) == $0 } ?? true }
        }
    }

    /// All that are of interest to the present user of this device.
    func identities() async throws(PushError) -> [(peer: ServicePeer, pin: PeerPins.Pin)] {
        try await store.write(reachingDisk: false) { db in
            let devices = try Row.all(db, "SELECT DISTINCT app, device FROM service_peer ORDER BY app, device")
            var found: [(peer: ServicePeer, pin: PeerPins.Pin)] = []
            for row in devices {
                let peer = ServicePeer(app: row["app"], device: row["device"])
                for pin in try Self.pins(of: peer.device, db).visible { found.append((peer, pin)) }
            }
            return found
        }
    }

    private func change<Value: Sendable>(
        _ device: String, _ app: String? = nil, _ body: @escaping @Sendable (inout PeerPins) -> Value
    ) async throws(PushError) -> Value {
        try await store.write { db in
            let before = try Self.pins(of: device, db)
            var after = before
            let value = body(&after)
            for pin in before.pins where !after.pins.contains(where: { $0.user == pin.user }) {
                try db.run("DELETE FROM service_peer WHERE device = ? AND user = ?", [device, pin.user])
            }
            for pin in after.pins where !before.pins.contains(pin) {
                let identity = Data(pin.identity)
                let offered = pin.offered.map { Data($0) }
                try db.run(
                    """
                    INSERT INTO service_peer (device, user, app, identity, offered, offered_at, pinned_at)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (device, user) DO UPDATE
                    SET identity = excluded.identity, offered = excluded.offered, offered_at = excluded.offered_at
                    """,
                    [device, pin.user, app ?? "", identity, offered, pin.offeredAt, pin.pinnedAt])
            }
            return value
        }
    }

    private static func pins(of device: String, _ db: Database) throws -> PeerPins {
        let rows = try Row.all(
            db, "SELECT * FROM service_peer WHERE device = ? ORDER BY pinned_at, user", [device])
        return PeerPins(
            ownUser: try presentUser(db),
            pins: rows.map { row in
                PeerPins.Pin(
                    user: row["user"], identity: Array(row["identity"] as Data),
                    offered: (row["offered"] as Data?).map { Array($0) }, offeredAt: row["offered_at"],
                    pinnedAt: row["pinned_at"])
            })
    }

    /// The user that the server said the device belongs to; empty: none.
    static func presentUser(_ db: Database) throws -> String { try String.first(db, "SELECT user FROM owner") ?? "" }
}

/// The identity of this device itself.
extension ServiceBox {
    /// The identities of so many users of the device are kept; the one that was used longest ago goes first.
    static let mostIdentities = 1000

    /// Returns the identity of the present user, made where there is none. Those of other users stay.
    static func identity(at now: Int64, _ db: Database) throws -> Curve25519.Signing.PrivateKey {
        let user = try presentUser(db)
        if let stored = try Data.first(db, "SELECT key FROM service_identity WHERE user = ?", [user]) {
            return try Curve25519.Signing.PrivateKey(rawRepresentation: stored)
        }
        let identity = Curve25519.Signing.PrivateKey()
        try db.run("INSERT INTO service_identity VALUES (?, ?, ?)", [user, identity.rawRepresentation, now])
        try db.run(
            """
            DELETE FROM service_identity WHERE user <> ? AND user NOT IN (
                SELECT user FROM service_identity WHERE user <> ? ORDER BY used_at DESC, user LIMIT ?)
            """, [user, user, mostIdentities - 1])
        return identity
    }

    /// The present user has a new key, as at each sign-in.
    static func noteUse(at now: Int64, _ db: Database) throws {
        try db.run("UPDATE service_identity SET used_at = ? WHERE user = ?", [now, try presentUser(db)])
    }
}
