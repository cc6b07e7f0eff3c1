import CarillonBasics
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension PushDeviceMachine {
    func save(to database: Database) throws {
        try database.execute(
            sql: """
                INSERT OR REPLACE INTO push_device (id, token, taken_token, status, reason, status_at, details)
                VALUES (1, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                token, acceptedToken, status.name, status.reason, statusAt,
                String(decoding: details.json.bytes, as: UTF8.self),
            ])
    }

    static func load(from database: Database) throws -> PushDeviceMachine {
        guard let row = try Row.fetchOne(database, sql: "SELECT * FROM push_device") else { return PushDeviceMachine() }
        let details = JSONValue(parsing: Array((row["details"] as String).utf8)).map(PushDeviceDetails.init)
        return PushDeviceMachine(
            token: row["token"], acceptedToken: row["taken_token"], details: details ?? PushDeviceDetails(),
            status: PushDeviceStatus(row["status"], row["reason"]) ?? .unknown, statusAt: row["status_at"])
    }
}

extension PushDeviceDetails {
    /// The form in which the server accepts the details, and in which they are stored.
    var json: JSONValue {
        var members: [JSONValue.Member] = [.init(name: "environment", value: .string(environment.rawValue))]
        for (name, text) in [("appVersion", appVersion), ("locale", locale), ("timeZone", timeZone)] {
            if let text { members.append(.init(name: name, value: .string(text))) }
        }
        if !parameters.isEmpty {
            let values = parameters.sorted { $0.key < $1.key }.map { JSONValue.Member(name: $0.key, value: $0.value.json) }
            members.append(.init(name: "parameters", value: .object(values)))
        }
        return .object(members)
    }

    /// - Parameter json: The stored form.
    fileprivate init(_ json: JSONValue) {
        func text(_ name: String) -> String? { if case .string(let text)? = json[name] { text } else { nil } }
        self.init(
            environment: text("environment").flatMap(Environment.init) ?? .production, appVersion: text("appVersion"),
            locale: text("locale"), timeZone: text("timeZone"))
        guard case .object(let values)? = json["parameters"] else { return }
        for member in values { parameters[member.name] = Parameter(member.value) }
    }
}

extension PushDeviceDetails.Parameter {
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .integer(let number): .integer(number)
        case .number(let number): .number(number)
        case .flag(let flag): .bool(flag)
        case .texts(let texts): .array(texts.map { .string($0) })
        }
    }

    fileprivate init?(_ json: JSONValue) {
        switch json {
        case .string(let text): self = .text(text)
        case .integer(let number): self = .integer(number)
        case .number(let number): self = .number(number)
        case .bool(let flag): self = .flag(flag)
        case .array(let values):
            self = .texts(values.compactMap { if case .string(let text) = $0 { text } else { nil } })
        case .null, .object: return nil
        }
    }
}
