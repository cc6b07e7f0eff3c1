import CarillonBasics
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A result that the app has not confirmed.
struct KeptResult: Equatable, Sendable {
    /// The id of the request.
    var id: String
    var app: String
    var device: String
    var service: String
    var version: String
    var method: String
    /// The value or the error: a ``SealedPayload`` without files.
    var payload: [UInt8]
    /// The received files, relative to the directory for received files.
    var files: [String]
    /// The size of the payload and the files.
    var bytes: Int64
    /// The starts of the app's code for the result that ended with the process.
    var starts = 0

    /// - Parameters:
    ///   - files: The received files, relative to the directory for received files.
    ///   - fileBytes: The size of the files.
    init(_ call: StoredCall, _ result: Result<ServiceReply, ServiceError>, files: [String], fileBytes: Int64) {
        id = call.id
        app = call.app
        device = call.device
        service = call.service
        version = call.version
        method = call.method
        switch result {
        case .success(let reply): payload = SealedPayload(.value(reply.value)).bytes
        case .failure(let error): payload = SealedPayload(.error(error)).bytes
        }
        self.files = files
        bytes = Int64(payload.count) + fileBytes
    }

    fileprivate init(_ row: Row) {
        id = row["id"]
        app = row["app"]
        device = row["device"]
        service = row["service"]
        version = row["version"]
        method = row["method"]
        payload = Array(row["payload"] as Data)
        files = Self.files(row["files"])
        bytes = row["bytes"]
        starts = row["starts"]
    }

    var application: ServiceApplication { ServiceApplication(app: app, device: device) }
    var serviceMethod: ServiceMethod { ServiceMethod(service, version, method) }

    /// - Parameter absolute: Returns the path of a received file.
    func result(_ absolute: (String) -> String) -> Result<ServiceReply, ServiceError> {
        do throws(ServiceError) {
            switch try SealedPayload(payload).content {
            case .value(let value): return .success(ServiceReply(value, attachments: files.map(absolute)))
            case .error(let error): return .failure(error)
            case .attached: return .failure(ServiceError(.serviceFailed, "The stored result has no value."))
            }
        } catch {
            return .failure(error)
        }
    }

    fileprivate static func text(_ files: [String]) -> String {
        String(decoding: JSONValue.array(files.map { .string($0) }).bytes, as: UTF8.self)
    }

    fileprivate static func files(_ text: String) -> [String] {
        guard case .array(let list)? = JSONValue(parsing: Array(text.utf8)) else { return [] }
        return list.compactMap { if case .string(let path) = $0 { path } else { nil } }
    }
}

/// A result that was removed before the app confirmed it.
struct RemovedResult: Equatable, Sendable {
    var id: String
    var application: ServiceApplication
    /// The received files, relative to the directory for received files.
    var files: [String]
    var reason: ResultRemoval

    init(id: String, application: ServiceApplication, files: [String], reason: ResultRemoval) {
        self.id = id
        self.application = application
        self.files = files
        self.reason = reason
    }

    fileprivate init(_ row: Row, _ reason: ResultRemoval) {
        self.init(
            id: row["id"], application: ServiceApplication(app: row["app"], device: row["device"] as String),
            files: KeptResult.files(row["files"]), reason: reason)
    }
}

/// The changes that the end of a request made.
struct EndedCall: Equatable, Sendable {
    /// Whether the request had no result before.
    var isFirst: Bool
    /// The results that were removed to make room.
    var removed: [RemovedResult] = []
}

extension ServiceBox {
    /// The most results that are kept without a confirmation.
    static let mostResults: Int64 = 1000
    /// The most bytes of these results, with their files.
    static let mostResultBytes: Int64 = 64 << 20
    /// The time for which such a result is kept.
    static let keptResultSeconds: Int64 = 7 * 86_400

    /// Ends a request: deletes it with its local deadline and the event that brought its result, and keeps the result.
    ///
    /// - Parameters:
    ///   - number: The event that brought the result.
    ///   - result: The result; nil if it needs no confirmation.
    ///   - spared: The results that must not be removed to make room.
    func end(
        _ id: String, event number: Int64?, keeping result: KeptResult?, sparing spared: Set<String> = [], at now: Int64
    ) async throws(PushError) -> EndedCall {
        // After a power failure the event is still stored, and is handled again.
        try await store.write(reachingDisk: false) { db in
            if let number { try db.run("DELETE FROM service_event WHERE number = ?", [number]) }
            try db.run("DELETE FROM service_call WHERE id = ?", [id])
            guard db.changesCount == 1 else { return EndedCall(isFirst: false) }
            guard let result else { return EndedCall(isFirst: true) }
            try db.run(
                """
                INSERT OR REPLACE INTO service_result (
                    id, app, device, service, version, method, files, bytes, received_at, payload)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    result.id, result.app, result.device, result.service, result.version, result.method,
                    KeptResult.text(result.files), result.bytes, now, Data(result.payload),
                ])
            return EndedCall(isFirst: true, removed: try Self.removeSurplus(sparing: spared, at: now, db))
        }
    }

    /// Returns the results that the app has not confirmed, in the order of arrival.
    func results() async throws(PushError) -> [KeptResult] {
        try await store.write(reachingDisk: false) { db in
            try Row.all(db, "SELECT * FROM service_result ORDER BY number").map { KeptResult($0) }
        }
    }

    func confirmResult(_ id: String) async throws(PushError) {
        try await store.write(reachingDisk: false) { db in
            try db.run("DELETE FROM service_result WHERE id = ?", [id])
        }
    }

    /// Removes the results that are too old or too many.
    func removeSurplusResults(sparing spared: Set<String>, at now: Int64) async throws(PushError) -> [RemovedResult] {
        try await store.write(reachingDisk: false) { db in try Self.removeSurplus(sparing: spared, at: now, db) }
    }

    /// Removes the results for which the process ended too often.
    func removeCrashingResults(sparing spared: Set<String>) async throws(PushError) -> [RemovedResult] {
        try await store.write(reachingDisk: false) { db in
            let rows = try Row.all(
                db, "SELECT id, app, device, files FROM service_result WHERE starts >= ?", [HandlerStarts.most])
            let removed = rows.map { RemovedResult($0, .crashed) }.filter { !spared.contains($0.id) }
            for result in removed { try db.run("DELETE FROM service_result WHERE id = ?", [result.id]) }
            return removed
        }
    }

    /// The newest result stays even if it is larger than the limit, because the app could not receive it otherwise.
    private static func removeSurplus(
        sparing spared: Set<String>, at now: Int64, _ db: Database
    ) throws -> [RemovedResult] {
        let columns = "number, id, app, device, files, bytes"
        var removed: [RemovedResult] = []
        func remove(_ row: Row, _ reason: ResultRemoval) throws {
            try db.run("DELETE FROM service_result WHERE number = ?", [row["number"] as Int64])
            removed.append(RemovedResult(row, reason))
        }
        let oldest = now - keptResultSeconds * 1000
        for row in try Row.all(db, "SELECT \(columns) FROM service_result WHERE received_at < ?", [oldest]) {
            try remove(row, .expired)
        }
        guard let sums = try Row.first(db, "SELECT count(*), coalesce(sum(bytes), 0), max(number) FROM service_result")
        else { return removed }
        var (count, bytes): (Int64, Int64) = (sums[0], sums[1])
        guard count > mostResults || bytes > mostResultBytes else { return removed }
        let newest: Int64? = sums[2]
        for row in try Row.all(db, "SELECT \(columns) FROM service_result ORDER BY number") {
            guard count > mostResults || bytes > mostResultBytes else { break }
            let (number, id): (Int64, String) = (row["number"], row["id"])
            guard number != newest, !spared.contains(id) else { continue }
            try remove(row, .limit)
            count -= 1
            bytes -= row["bytes"] as Int64
        }
        return removed
    }
}
