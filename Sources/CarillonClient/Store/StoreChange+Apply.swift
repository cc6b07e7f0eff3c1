import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension StoreChange {
    func apply(to database: Database) throws {
        switch self {
        case .saveIdentity(let identity):
            try database.execute(
                sql: "UPDATE owner SET device = ?, credential = ?, socket = ?, was_lost = 0",
                arguments: [identity.device, identity.credential, identity.socket])
        case .eraseIdentity:
            try database.execute(
                sql: """
                    UPDATE owner SET device = NULL, credential = NULL, socket = NULL, was_lost = 1;
                    DELETE FROM handled;
                    DELETE FROM withdrawal;
                    """)
        case .saveChannel(let identifier, let channel):
            try database.execute(
                sql: """
                    INSERT OR REPLACE INTO channel (
                        identifier, state, channel_id, endpoint, error_code, private_key, auth_secret, token_due)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    identifier, channel.state.rawValue, channel.channelID?.description, channel.endpoint?.text,
                    channel.lastErrorCode, channel.keys.map { Data($0.privateKey) },
                    channel.keys.map { Data($0.authSecret) }, channel.isTokenDue,
                ])
        case .saveWithdrawal(let id):
            try database.execute(
                sql: "INSERT OR IGNORE INTO withdrawal (channel_id) VALUES (?)", arguments: [id.description])
        case .removeWithdrawal(let id):
            try database.execute(sql: "DELETE FROM withdrawal WHERE channel_id = ?", arguments: [id.description])
        case .saveHandled(let message):
            try database.cachedStatement(sql: "INSERT OR IGNORE INTO handled (id, code) VALUES (?, ?)")
                .execute(arguments: [message.id, message.code])
            try database.cachedStatement(
                sql: "DELETE FROM handled WHERE position <= (SELECT max(position) FROM handled) - ?"
            ).execute(arguments: [ClientStore.handledLimit])
        }
    }
}

extension StoredState {
    static func load(from database: Database, server: String, app: String) throws -> StoredState {
        var state = StoredState()
        if let owner = try Row.fetchOne(database, sql: "SELECT * FROM owner") {
            guard owner["server"] == server, owner["app"] == app else {
                let former: (server: String, app: String) = (owner["server"], owner["app"])
                throw PushError(
                    .storageMismatch,
                    "The storage belongs to the app \(former.app) at \(former.server), not to \(app) at \(server); use another directory."
                )
            }
            if let device = owner["device"] as String?, let credential = owner["credential"] as String?,
                let socket = owner["socket"] as String?
            {
                state.identity = DeviceIdentity(device: device, credential: credential, socket: socket)
            }
            state.identityWasLost = owner["was_lost"]
        } else {
            try database.execute(sql: "INSERT INTO owner (id, server, app) VALUES (1, ?, ?)", arguments: [server, app])
        }
        for row in try Row.fetchAll(database, sql: "SELECT * FROM channel") {
            guard let channelState = PushChannelState(rawValue: row["state"]) else {
                throw PushError(
                    .storageDamaged, "The storage holds a channel in the unknown state \"\(row["state"] as String)\".")
            }
            state.channels[row["identifier"]] = ChannelMachine(
                state: channelState,
                channelID: (row["channel_id"] as String?).flatMap { ChannelID($0) },
                endpoint: (row["endpoint"] as String?).flatMap { ChannelEndpoint($0) },
                lastErrorCode: row["error_code"],
                keys: try keys(in: row),
                isTokenDue: row["token_due"])
        }
        for text in try String.fetchAll(database, sql: "SELECT channel_id FROM withdrawal") {
            if let id = ChannelID(text) { state.withdrawals.insert(id) }
        }
        return state
    }

    private static func keys(in row: Row) throws -> SubscriptionKeys? {
        guard let privateKey = row["private_key"] as Data? else { return nil }
        let authSecret = row["auth_secret"] as Data? ?? Data()
        guard let keys = SubscriptionKeys(privateKey: Array(privateKey), authSecret: Array(authSecret)) else {
            throw PushError(.storageDamaged, "The storage holds keys of a channel that are none.")
        }
        return keys
    }
}
