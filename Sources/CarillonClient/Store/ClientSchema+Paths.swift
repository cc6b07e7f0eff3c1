import CarillonBasics
import GRDB

extension ClientSchema {
    /// Converts the paths that earlier versions stored in their original form.
    static func convertPaths(_ database: Database, _ paths: StoragePaths) throws {
        let events = try Row.fetchAll(
            database, sql: "SELECT number, directory FROM service_event WHERE directory IS NOT NULL")
        for row in events {
            let (number, directory): (Int64, String) = (row["number"], row["directory"])
            try database.execute(
                sql: "UPDATE service_event SET directory = ? WHERE number = ?",
                arguments: [paths.converted(directory), number])
        }
        for row in try Row.fetchAll(database, sql: "SELECT id, call FROM service_call") {
            let (id, call): (String, String) = (row["id"], row["call"])
            guard let converted = convert(call, paths) else { continue }
            try database.execute(sql: "UPDATE service_call SET call = ? WHERE id = ?", arguments: [converted, id])
        }
    }

    /// Returns nil if this version cannot read the call.
    private static func convert(_ call: String, _ paths: StoragePaths) -> String? {
        guard case .object(let members)? = JSONValue(parsing: Array(call.utf8)) else { return nil }
        let converted = members.map { member -> JSONValue.Member in
            guard member.name == "attachments", case .array(let list) = member.value else { return member }
            let texts = list.map { text -> JSONValue in
                if case .string(let path) = text { .string(paths.converted(path)) } else { text }
            }
            return .init(name: member.name, value: .array(texts))
        }
        return String(decoding: JSONValue.object(converted).bytes, as: UTF8.self)
    }
}
