package import CarillonCore
package import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension SQLiteStore: InboxStore {
    package func commit(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        do {
            return try await changeInboxes { _, transaction in try transaction.perform(operations) }
        } catch {
            guard operations.count > 1, (error as? StoreFault)?.kind != .fenced else { throw error }
            return try await commitEach(operations)
        }
    }

    /// Commits each change separately, because one of them cannot be stored. Uses one transaction, if the fault does not end it.
    private func commitEach(_ operations: [InboxOperation]) async throws -> [InboxResult] {
        do {
            let (results, tally) = try await group.run { [memory, settings] db in
                var (results, tally): ([InboxResult], InboxTally) = ([], InboxTally())
                var (failures, inARow): (Int, Int) = (0, 0)
                for operation in operations {
                    do {
                        guard inARow < Self.failuresInARow, failures < Self.failuresInAll else {
                            throw StoreFault(.unavailable, "too many earlier changes could not be stored")
                        }
                        let transaction = InboxTransaction(db, memory: memory, settings: settings)
                        var result = InboxResult.notWaiting
                        try db.inSavepoint {
                            result = try transaction.perform([operation])[0]
                            try transaction.finish()
                            return .commit
                        }
                        results.append(result)
                        tally.add(transaction.tally)
                        inARow = 0
                    } catch {
                        guard db.isInsideTransaction else { throw error }
                        if inARow < Self.failuresInARow, failures < Self.failuresInAll { memory.rolledBack(in: db) }
                        (failures, inARow) = (failures + 1, inARow + 1)
                        results.append(.failed(StoreFault(error)))
                    }
                }
                return (results, tally)
            }
            metrics.count(tally)
            return results
        } catch {
            return try await commitAlone(operations, after: error)
        }
    }

    /// Commits each change in its own transaction, because the fault ends whole transactions. If the disk is nearly full, small
    /// changes may still fit.
    private func commitAlone(_ operations: [InboxOperation], after fault: any Error) async throws -> [InboxResult] {
        var results: [InboxResult] = []
        var failures = 0
        for operation in operations {
            do {
                guard failures < Self.failuresInARow else { throw fault }
                results += try await changeInboxes { _, transaction in try transaction.perform([operation]) }
                failures = 0
            } catch {
                failures += 1
                results.append(.failed(StoreFault(error)))
            }
        }
        guard results.contains(where: { if case .failed = $0 { false } else { true } }) else { throw fault }
        return results
    }

    /// After this number of failed changes in a row, the store itself is at fault, and the rest are not tried.
    private static let failuresInARow = 8
    /// Each failure causes the caches to be read again, so their number is limited.
    private static let failuresInAll = 64

    package func waiting(
        device: DeviceSerial, after position: Int64, limit: Int, bytes: Int, at now: Timestamp
    ) async throws -> [Envelope]? {
        let key = InboxIndex.Key(device, isFinal: false)
        let inMemory = try memory.index.slotsForReaders(of: key, after: position)
        return try await readPage(of: bytes) { db in
            let slots = WaitingSlots(key, inMemory: inMemory, after: position, in: db)
            return try slots.envelopes(limit: limit, bytes: bytes, at: now)
        }
    }

    private static func exists(_ device: DeviceSerial, in db: Database) throws -> Bool {
        var select = try BoundStatement(
            db,
            """
            SELECT 1 FROM device JOIN app ON app.serial = device.app AND app.ended_at IS NULL WHERE device.serial = ?
            """)
        select.bind(device.rawValue)
        return try select.run()
    }

    package func arrival(of name: DeviceName, _ load: PageRequest, at now: Timestamp) async throws -> Arrival? {
        try await readStepwise { [self] db in
            guard let device = try Self.device(name, in: db) else { return nil }
            // An anonymous device has no reports.
            let said =
                try device.isAnonymous
                ? .none : RegistrationTable(db, memory: memory).reportedRevisions(of: device.serial)
            var arrival = Arrival(device: device, envelopes: nil, reported: said)
            do {
                arrival.envelopes = try Self.envelopes(of: device.serial, load, at: now, memory, in: db)
                if arrival.envelopes == nil { return nil }
            } catch {
                health.met(error)
            }
            return arrival
        }
    }

    /// Reads a page in its own transaction. Returns nil if the device was removed.
    private static func envelopes(
        of device: DeviceSerial, _ load: PageRequest, at now: Timestamp, _ memory: InboxMemory, in db: Database
    ) throws -> [Envelope]? {
        let key = InboxIndex.Key(device, isFinal: false)
        // The index is read before the transaction begins.
        let slots = WaitingSlots(
            key, inMemory: try memory.index.slotsForReaders(of: key, after: load.after), after: load.after, in: db)
        var envelopes: [Envelope]?
        try db.inTransaction(.deferred) {
            envelopes = try slots.envelopes(limit: load.limit, bytes: load.bytes, at: now)
            return .commit
        }
        return envelopes
    }

    package func waitingCount(device: DeviceSerial, at now: Timestamp) async throws -> Int {
        let key = InboxIndex.Key(device, isFinal: false)
        let inMemory = try memory.index.slotsForReaders(of: key)
        return try await read { db in try WaitingSlots(key, inMemory: inMemory, after: 0, in: db).count(at: now) }
    }

    package func record(of id: MessageID, at now: Timestamp) async throws -> MessageRecord? {
        try await read { db in
            guard let row = try Self.row(of: id, in: db), row.kind.behaviour.keepsOutcome else { return nil }
            var record = MessageRecord(row, at: now)
            // Waiting messages of a deleted device are ended a little later.
            if record.finalOutcome == nil, try !Self.exists(row.device, in: db) {
                record.finalOutcome = FinalOutcome(.gone, at: now)
            }
            return record
        }
    }

    private static func row(of id: MessageID, in db: Database) throws -> InboxRow? {
        let row = try InboxReader.row(at: id.position, in: db)
        return row?.id == id ? row : nil
    }

    package func sweep(at now: Timestamp, forgetting retention: RetentionTime?, limit: Int) async throws -> Swept {
        try await changeInboxes { _, transaction in
            try transaction.sweep(at: now, forgetting: retention, limit: limit)
        }
    }

    package func waitingInAll() async throws -> InboxUsage.Waiting {
        try await read { db in try CounterTable(db).waiting() }
    }

    /// Changes inboxes inside a group. The changes are counted when they are on disk.
    func changeInboxes<Value: Sendable>(
        _ work: @escaping @Sendable (Database, InboxTransaction) throws -> Value
    ) async throws -> Value {
        let (value, tally) = try await group.run { [memory, settings] db in
            let transaction = InboxTransaction(db, memory: memory, settings: settings)
            let value = try work(db, transaction)
            try transaction.finish()
            return (value, transaction.tally)
        }
        metrics.count(tally)
        return value
    }
}

extension SQLiteStore: SharedContentStore {
    package func addContent(_ body: [UInt8]) async throws -> SharedContentID {
        try await group.run { db in
            try db.run("INSERT INTO shared_content (body) VALUES (?)", [Data(body)])
            return SharedContentID(db.lastInsertedRowID)
        }
    }

    package func releaseContent(_ id: SharedContentID) async throws {
        try await group.run { db in
            try db.run("UPDATE shared_content SET is_released = TRUE WHERE serial = ?", [id.rawValue])
        }
    }
}

extension MessageRecord {
    /// A waiting message whose time is over has expired, even if it was not swept yet.
    fileprivate init(_ row: InboxRow, at now: Timestamp) {
        self.init(
            device: row.device, app: row.app, acceptedAt: row.acceptedAt, expiresAt: row.expiresAt,
            finalOutcome: row.finalOutcome ?? (row.waitsUntil <= now ? row.timeOver : nil))
    }
}
