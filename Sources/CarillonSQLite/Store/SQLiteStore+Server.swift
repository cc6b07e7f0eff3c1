import CarillonCore
package import CarillonWire
import GRDB

extension SQLiteStore: ServerStore {
    package func serverID(orMake make: @escaping @Sendable () -> ServerID) async throws -> ServerID {
        try await group.run { db in
            if let row = try Row.fetchOne(db, sql: "SELECT id FROM server") { return ServerID(try row.bytes16("id")) }
            let id = make()
            try db.execute(sql: "INSERT INTO server (serial, id) VALUES (1, ?)", arguments: [id.value.data])
            return id
        }
    }
}
