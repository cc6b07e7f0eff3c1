package import CarillonCore
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: UserStore {
    package func putUserRules(_ rules: StoredUserRules) async throws -> Bool {
        try await group.run { db in
            try db.run(
                """
                INSERT INTO user_rules (app, sealed, set_at)
                SELECT serial, ?, ? FROM app WHERE serial = ? AND ended_at IS NULL
                ON CONFLICT (app) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at
                """, [Data(rules.sealed), rules.setAt.milliseconds, rules.app.rawValue])
            return db.changesCount == 1
        }
    }

    package func userRules(of app: AppSerial) async throws -> StoredUserRules? {
        try await read { db in
            let select = try db.cachedStatement(sql: "SELECT sealed, set_at FROM user_rules WHERE app = ?")
            return try Row.first(select, [app.rawValue]) { row in
                StoredUserRules(app: app, sealed: row.bytes(at: 0) ?? [], setAt: row.timestamp(at: 1))
            }
        }
    }

    package func removeUserRules(of app: AppSerial) async throws -> Bool {
        try await group.run { db in
            try db.run("DELETE FROM user_rules WHERE app = ?", [app.rawValue])
            return db.changesCount == 1
        }
    }

    package func channelsOfFormerUsers(
        of device: DeviceSerial?, in shards: ShardSet, limit: Int
    ) async throws -> [PushChannel] {
        try await read { db in
            let ofDevice = device == nil ? "" : " AND channel.device = :device"
            var arguments: StatementArguments = ["limit": limit]
            if let device { arguments += ["device": device.rawValue] }
            return try Row.fetchAll(
                db,
                sql: """
                    \(Self.selectAllChannels) WHERE channel.of_user = 2\(ofDevice) \(shards.condition(on: "channel.device"))
                    ORDER BY channel.serial LIMIT :limit
                    """,
                arguments: arguments
            ).map(PushChannel.init)
        }
    }
}
