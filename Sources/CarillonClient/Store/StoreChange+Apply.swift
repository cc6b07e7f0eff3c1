import CarillonMessages
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
        case .saveRegistration(let secret):
            try database.run("UPDATE owner SET registration = ?", [secret])
        case .saveIdentity(let identity):
            try database.run(
                "UPDATE owner SET device = ?, credential = ?, socket = ?, was_lost = 0",
                [identity.device, identity.credential, identity.socket])
        case .saveServer(let address, let id):
            try database.run("UPDATE owner SET server = ?, server_id = ?", [address, id])
        case .saveRenewal(let secret):
            try database.run("UPDATE owner SET renewal = ?", [secret])
        case .saveAcceptedUser(let user):
            let former = try String.first(database, "SELECT user FROM owner")
            if former != user {
                // At the first sign-in, the results that the app did not confirm are kept.
                try database.execute(sql: former == nil ? ServiceBoxSchema.eraseForFirstUser : ServiceBoxSchema.erase)
                try database.execute(sql: HandlerStarts.eraseFirings)
            }
            try database.run("UPDATE owner SET user = ?", [user])
        case .eraseIdentity:
            try database.execute(
                sql: """
                    UPDATE owner SET device = NULL, credential = NULL, socket = NULL, was_lost = 1, server_id = NULL,
                        renewal = NULL;
                    DELETE FROM handled;
                    DELETE FROM report;
                    DELETE FROM withdrawal;
                    \(HandlerStarts.eraseFirings)
                    \(UpdateInboxSchema.eraseOwners)
                    \(ServiceBoxSchema.erase)
                    """)
        case .eraseServiceIdentities:
            try database.execute(sql: ServiceBoxSchema.eraseIdentities)
        case .saveChannel(let identifier, let channel):
            try database.run(
                """
                INSERT OR REPLACE INTO channel (
                    identifier, state, channel_id, endpoint, error_code, private_key, auth_secret, token_due, wake)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    identifier, channel.state.rawValue, channel.channelID?.description, channel.endpoint?.text,
                    channel.lastErrorCode, channel.keys.map { Data($0.privateKey) },
                    channel.keys.map { Data($0.authSecret) }, channel.isTokenDue,
                    channel.wake?.rawValue,
                ])
        case .removeChannel(let identifier):
            try database.run("DELETE FROM channel WHERE identifier = ?", [identifier])
            try StoreChange.removeMessages(of: identifier).apply(to: database)
        case .saveWithdrawal(let id):
            try database.run(
                "INSERT OR IGNORE INTO withdrawal (channel_id) VALUES (?)", [id.description])
        case .removeWithdrawal(let id):
            try database.run("DELETE FROM withdrawal WHERE channel_id = ?", [id.description])
        case .saveDeregistration(let deregistration):
            try database.run(
                """
                INSERT OR REPLACE INTO farewell (device, credential, server, next_credential, registration)
                VALUES (?, ?, ?, ?, ?)
                """,
                [
                    deregistration.device, deregistration.credential, deregistration.server, deregistration.nextCredential,
                    deregistration.registration,
                ])
        case .removeDeregistration(let device):
            try database.run("DELETE FROM farewell WHERE device = ?", [device])
        case .saveDevice(let device):
            try device.save(to: database)
        case .saveMessage(let message, let identifier):
            try database.cachedStatement(
                sql: """
                    INSERT INTO message (position, channel, id, body, encoding, encryption, crypto_key)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """
            ).execute(arguments: [
                message.position, identifier, message.id, Data(message.body), message.coding?.name.rawValue,
                message.coding?.encryption, message.coding?.cryptoKey,
            ])
        case .saveUser(let userChange):
            try database.execute(sql: "DELETE FROM push_user")
            if let userChange {
                try database.run("INSERT INTO push_user (id, token) VALUES (1, ?)", [userChange.token])
            }
        case .saveStarts(let position, let starts):
            try database.run("UPDATE message SET starts = ? WHERE position = ?", [starts, position])
        case .saveFiringStarts(let id, 0):
            try database.run("DELETE FROM firing_start WHERE id = ?", [id])
        case .saveFiringStarts(let id, let starts):
            try database.run(
                """
                INSERT INTO firing_start (id, starts) VALUES (?, ?)
                    ON CONFLICT (id) DO UPDATE SET starts = excluded.starts
                """, [id, starts])
            // Positions have gaps, because handled firings are removed.
            try database.run(
                """
                DELETE FROM firing_start
                    WHERE position <= (SELECT position FROM firing_start ORDER BY position DESC LIMIT 1 OFFSET ?)
                """, [ClientStore.firingStartsLimit])
        case .removeMessages(let identifier):
            try database.run("DELETE FROM message WHERE channel = ?", [identifier])
        case .removeMessage(let position):
            try database.cachedStatement(sql: "DELETE FROM message WHERE position = ?").execute(arguments: [position])
        case .saveServiceEvent(let body):
            try database.run("INSERT INTO service_event (body) VALUES (?)", [Data(body)])
        case .saveReport(let answer):
            try database.run("INSERT INTO report (id, code) VALUES (?, ?)", [answer.id, answer.code])
            try database.run(
                "DELETE FROM report WHERE position <= (SELECT max(position) FROM report) - ?",
                [SessionMessages.reportsLimit])
        case .removeReports:
            try database.execute(sql: "DELETE FROM report")
        case .saveAnswer(let message):
            try database.cachedStatement(
                sql: "INSERT INTO handled (id, code) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET code = excluded.code"
            ).execute(arguments: [message.id, message.code])
            try database.cachedStatement(
                sql: "DELETE FROM handled WHERE position <= (SELECT max(position) FROM handled) - ?"
            ).execute(arguments: [ClientStore.handledLimit])
        }
    }
}

extension StoredState {
    static func load(from database: Database, server: String, app: String) throws -> StoredState {
        var state = StoredState()
        if let owner = try Row.first(database, "SELECT * FROM owner") {
            let former: (server: String, app: String) = (owner["server"], owner["app"])
            state.serverID = owner["server_id"]
            state.registration = owner["registration"]
            state.renewal = owner["renewal"]
            state.acceptedUser = owner["user"]
            // A server with another address is recognised by its id, if it sent one.
            let isServerKnown = owner["device"] as String? == nil || state.serverID != nil
            guard former.app == app, former.server == server || isServerKnown else {
                throw PushError(
                    .storageMismatch,
                    "The storage belongs to the app \(former.app) at \(former.server), not to \(app) at \(server); use another directory."
                )
            }
            if former.server != server { state.formerServer = former.server }
            if let device = owner["device"] as String?, let credential = owner["credential"] as String?,
                let socket = owner["socket"] as String?
            {
                state.identity = DeviceIdentity(device: device, credential: credential, socket: socket)
            } else if state.formerServer != nil {
                try database.run(
                    "UPDATE owner SET server = ?, server_id = NULL, registration = NULL", [server])
                (state.formerServer, state.serverID, state.registration) = (nil, nil, nil)
            }
            state.identityWasLost = owner["was_lost"]
        } else {
            try database.run("INSERT INTO owner (id, server, app) VALUES (1, ?, ?)", [server, app])
        }
        for row in try Row.all(database, "SELECT * FROM channel") {
            guard let channelState = ChannelState(rawValue: row["state"]) else {
                throw PushError(
                    .storageDamaged, "The storage holds a channel in the unknown state \"\(row["state"] as String)\".")
            }
            state.channels[row["identifier"]] = ChannelMachine(
                state: channelState,
                channelID: (row["channel_id"] as String?).flatMap { ChannelID($0) },
                endpoint: (row["endpoint"] as String?).flatMap { ChannelEndpoint($0) },
                lastErrorCode: row["error_code"],
                keys: try keys(in: row),
                wake: (row["wake"] as String?).flatMap(WakeMode.init),
                isTokenDue: row["token_due"])
        }
        for text in try String.fetchAll(database, sql: "SELECT channel_id FROM withdrawal") {
            if let id = ChannelID(text) { state.withdrawals.insert(id) }
        }
        try state.loadMessages(from: database)
        state.device = try PushDeviceMachine.load(from: database)
        state.user = try Row.first(database, "SELECT token FROM push_user").map { row in
            (row["token"] as String?).map(UserChange.signedIn) ?? .signedOut
        }
        state.deregistrations = try Row.all(database, "SELECT * FROM farewell ORDER BY device").map {
            Deregistration(
                device: $0["device"], credential: $0["credential"], nextCredential: $0["next_credential"],
                registration: $0["registration"], server: $0["server"])
        }
        state.namedServers = try Row.all(database, "SELECT * FROM named_server").map {
            NamedServer(base: $0["base"], id: $0["id"], seenAt: $0["seen_at"])
        }
        return state
    }

    private mutating func loadMessages(from database: Database) throws {
        let uses = try Row.all(
            database,
            """
            SELECT channel, count(*) AS messages, sum(length(body)) AS bytes, max(position) AS position
            FROM message GROUP BY channel
            """)
        for row in uses {
            buffers[row["channel"]] = BufferUse(
                messages: row["messages"], bytes: row["bytes"], lastPosition: row["position"])
        }
        reports = try Row.all(database, "SELECT id, code FROM report ORDER BY position").map {
            MessageAnswer(id: $0["id"], code: $0["code"])
        }
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
