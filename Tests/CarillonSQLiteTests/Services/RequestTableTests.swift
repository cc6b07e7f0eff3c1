import CarillonCore
import CarillonWire
import GRDB
import Testing

@testable import CarillonSQLite

/// Rows of requests that change between the reading of their facts and the writing of a decision.
struct RequestTableTests {
    private let serial = RequestSerial(7)
    private let now = Timestamp(milliseconds: 1_000_000)

    private func makeQueue() throws -> DatabaseQueue {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try Schema.bringUpToDate(db)
            var changes = RequestChanges()
            changes.made = [
                ServiceRequest(
                    id: ServiceRequestID(Bytes16(high: 1, low: 1)),
                    envelope: MessageID(position: serial.rawValue, secret: Bytes16(high: 2, low: 2)),
                    consumer: DeviceSerial(1), consumerApp: AppSerial(1), provider: DeviceSerial(2),
                    providerApp: AppSerial(1), fingerprint: [1], expiresAt: now)
            ]
            try RequestTable(db, memory: RequestMemory()).write(changes)
        }
        return queue
    }

    private func state(_ db: Database) throws -> Int? {
        try Int.fetchOne(db, sql: "SELECT state FROM service_request WHERE serial = ?", arguments: [serial.rawValue])
    }

    private static let ends = ["UPDATE service_request SET state = 2, reply_hash = x'09'", "DELETE FROM service_request"]
    private static let steps: [RequestStep] = [
        .received(RequestSerial(7)),
        .finished(RequestSerial(7), replyHash: [1], at: Timestamp(milliseconds: 1)),
    ]

    @Test(arguments: ends, steps)
    func `a step is not written over a request that was finished or removed since`(sql: String, step: RequestStep) throws {
        let queue = try makeQueue()
        try queue.write { db in
            let steps = RequestSteps(db, memory: RequestMemory())
            try steps.readFacts(of: [step])
            #expect(steps.counts(step))
            steps.accept(step)
            try db.execute(sql: sql)
            let before = try state(db)
            #expect(throws: StoreFault.self) { try steps.write() }
            #expect(try state(db) == before)
        }
    }

    @Test func `steps are written once, and their facts do not outlive that`() throws {
        let queue = try makeQueue()
        try queue.write { db in
            let steps = RequestSteps(db, memory: RequestMemory())
            let step = RequestStep.received(serial)
            try steps.readFacts(of: [step])
            steps.accept(step)
            #expect(try steps.write())
            #expect(try state(db) == ServiceRequest.State.received.rawValue)
            try db.execute(sql: "UPDATE service_request SET state = 0")
            #expect(!steps.counts(step), "its facts were not read again")
            #expect(try steps.write())
            #expect(try state(db) == ServiceRequest.State.waiting.rawValue)
        }
    }
}
