import CarillonWire
import Crypto
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The identities of other devices, when they were first seen or accepted.
extension ServiceBox {
    /// Compares the identity that a device presents. A first identity is accepted.
    ///
    /// - Parameters:
    ///   - user: The user of the device, if this device is a server and knows the user: see ``PeerPins``.
    ///   - acceptsFirst: Whether a first identity is stored; false if the app has not decided yet.
    func trust(
        of peer: ServicePeer, _ identity: [UInt8], user: String?, at now: Int64, acceptsFirst: Bool = true
    ) async throws(PushError) -> PeerTrust {
        try await change(peer.device, peer.app) { pins in
            var present = pins
            let trust = present.presented(identity, reportedUser: user, at: now)
            if trust != .first || acceptsFirst { pins = present }
            return trust
        }
    }

    /// Accepts the newest other identity of a device.
    ///
    /// - Parameter fingerprint: The fingerprint that the identity must have; nil accepts any.
    /// - Returns: False if the device has presented no other identity with this fingerprint.
    func accept(_ device: String, fingerprint: String? = nil) async throws(PushError) -> Bool {
        try await change(device) { pins in
            pins.accepted { identity in fingerprint.map { Fingerprint.text(of: identity) == $0 } ?? true }
        }
    }

    /// Returns all identities for the present user of this device.
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

    /// Returns the user of this device that the server reported; empty if it has none.
    static func presentUser(_ db: Database) throws -> String { try String.first(db, "SELECT user FROM owner") ?? "" }
}

/// The identity of this device.
extension ServiceBox {
    /// The most users of the device whose identities are stored. Beyond that, the identity that was used longest ago is removed.
    static let mostIdentities = 1000

    /// Returns the identity of the present user, and makes it if it does not exist. The identities of other users stay.
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

    /// Records that the present user has a new key, as at each sign-in.
    static func noteUse(at now: Int64, _ db: Database) throws {
        try db.run("UPDATE service_identity SET used_at = ? WHERE user = ?", [now, try presentUser(db)])
    }
}
