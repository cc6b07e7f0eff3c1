import CarillonCore
import CarillonWire
import GRDB
import TestStores
import Testing

@testable import CarillonSQLite
@testable import StoreConformance

private let start = StoreFixture.start

/// The unfinished requests in the memory of the store, compared with their rows.
@Suite(.timeLimit(.minutes(5)))
struct RequestMemoryTests {
    private struct World {
        let fixture: ServiceFixture
        let phone: Device
        let tablet: Device
        var store: SQLiteStore { fixture.base.sqlite }

        init() async throws {
            fixture = try await ServiceFixture(SQLiteStores.memory)
            phone = try await fixture.device(1)
            tablet = try await fixture.device(2)
            try await fixture.offer(tablet)
        }

        func make(_ number: Int64 = 1) async throws -> ServiceRequest {
            try await fixture.make(number, from: phone, to: tablet)
        }

        func row(_ id: ServiceRequestID) async throws -> ServiceRequest? {
            try await store.read { db in try RequestReader(db).request(id) }
        }

        func known(_ id: ServiceRequestID) -> ServiceRequest? { store.memory.requests.committed(id) }
    }

    // MARK: Steps

    @Test func `an unfinished request is remembered as its row is, and a finished one is not`() async throws {
        let world = try await World()
        let request = try await world.make()
        #expect(try await world.row(request.id) == request)
        #expect(world.known(request.id) == request)
        let steps = [RequestStep.received(request.serial), .unwanted(request.serial)]
        for (step, position) in zip(steps, Int64(11)...) {
            #expect(try await world.fixture.notify(step, of: request, at: position))
            let row = try #require(try await world.row(request.id))
            #expect(row != request && world.known(request.id) == row)
        }
        #expect(try await world.fixture.notify(.finished(request.serial, replyHash: [5], at: start), of: request, at: 20))
        #expect(world.known(request.id) == nil)
        let finished = try #require(try await world.store.serviceRequest(request.id))
        #expect(finished.state == .finished && finished.replyHash == [5] && finished.isUnwanted)
    }

    @Test func `a request that is cancelled is not remembered`() async throws {
        let world = try await World()
        let request = try await world.make()
        #expect(try await world.store.cancelRequest(request.serial, at: start))
        #expect(world.known(request.id) == nil)
        #expect(try await world.store.serviceRequest(request.id)?.state == .finished)
    }

    @Test func `a step of a request that is remembered reads no row of it`() async throws {
        let world = try await World()
        let (store, request) = (world.store, try await world.make())
        func reads(_ work: () async throws -> Void) async throws -> Int {
            try await store.tracing(work).statements.filter { $0.contains("FROM service_request WHERE") }.count
        }
        let known = try await reads {
            let read = try await store.serviceRequest(request.id)
            let counts = try await world.fixture.notify(.received(request.serial), of: request, at: 11)
            #expect(read == request && counts)
        }
        #expect(known == 0)
        store.memory.requests.forgetAll()
        let unknown = try await reads {
            let counts = try await world.fixture.notify(.unwanted(request.serial), of: request, at: 12)
            let read = try await store.serviceRequest(request.id)
            #expect(counts && read?.isUnwanted == true)
        }
        #expect(unknown == 1, "the transaction remembers its reads")
        let row = try await world.row(request.id)
        #expect(world.known(request.id) == row)
    }

    @Test func `a request that is remembered is not returned after the store is closed`() async throws {
        let world = try await World()
        let (store, request) = (world.store, try await world.make())
        #expect(world.known(request.id) == request)
        try store.close()
        await #expect(throws: StoreFault.self) { try await store.serviceRequest(request.id) }
    }

    // MARK: Ends

    enum End: CaseIterable, Sendable {
        case consumerChangesUser, providerChangesUser, consumerIsDeleted, providerIsDeleted, serverIsRemoved
    }

    @Test(arguments: End.allCases)
    func `a request that the server is to end is not remembered`(end: End) async throws {
        let world = try await World()
        let (store, fixture, phone, tablet) = (world.store, world.fixture, world.phone, world.tablet)
        if end == .serverIsRemoved {
            #expect(try await store.setClusterPlace(ClusterPlace(), of: tablet.id, app: tablet.app) == true)
        }
        let request = try await world.make()
        let (watch, laptop) = (try await fixture.device(3), try await fixture.device(4))
        try await fixture.offer(laptop)
        let other = try await fixture.make(2, from: watch, to: laptop)
        #expect(world.known(request.id) == request && world.known(other.id) == other)
        switch end {
        case .consumerChangesUser: try await fixture.signIn("bob", on: phone)
        case .providerChangesUser: try await fixture.signIn("bob", on: tablet)
        case .consumerIsDeleted: _ = try await store.deleteDevice(phone.serial, at: start)
        case .providerIsDeleted: _ = try await store.deleteDevice(tablet.serial, at: start)
        case .serverIsRemoved:
            #expect(try await store.setClusterPlace(nil, of: tablet.id, app: tablet.app) == true)
        }
        #expect(world.known(request.id) == nil)
        #expect(world.known(other.id) == other, "it is between other devices")
        let row = try await world.row(request.id)
        #expect(try await store.serviceRequest(request.id) == row)
        #expect(try await !fixture.notify(.finished(request.serial, replyHash: [1], at: start), of: request, at: 30))
    }

    // MARK: Faults

    @Test(arguments: [false, true])
    func `rows of failed work are not remembered, also beside work that succeeds`(isAfter: Bool) async throws {
        let world = try await World()
        let (store, request) = (world.store, try await world.make())
        let memory = store.memory.requests
        let second = ServiceFixture.request(2, from: world.phone, to: world.tablet)
        let made = ServiceFixture.made(second, try await world.fixture.parties(world.phone, world.tablet))
        let make: @Sendable () async throws -> Bool = { try await store.commit([made]) == [.stored(replaced: nil)] }
        let fail: @Sendable () async throws -> Bool = {
            try await store.group.run { db -> Bool in
                var changes = RequestChanges()
                changes.changed[request.serial] = RequestChanges.Change(state: .received, isUnwanted: true)
                try RequestTable(db, memory: memory).write(changes)
                throw StoreFault(.full, "its own")
            }
        }
        let gate = Gate()
        async let first: Void = store.group.run { _ in gate.pass() }
        await gate.reached()
        let results = await together(isAfter ? [fail, make] : [make, fail]) { gate.open() }
        try await first
        #expect(results.map { (try? $0.get()) != nil } == (isAfter ? [false, true] : [true, false]))
        #expect(try await store.serviceRequest(request.id) == request)
        #expect(try await store.serviceRequest(second.id) == second)
        #expect(try await world.fixture.notify(.received(request.serial), of: request, at: 11))
    }

    @Test func `a change is remembered when it is committed, up to a limit`() throws {
        let (queue, memory) = (try DatabaseQueue(), RequestMemory(capacity: 1))
        let requests = (Int64(1)...3).map { number in
            ServiceRequest(
                id: ServiceFixture.id(number), envelope: MessageID(position: number, secret: Bytes16(high: 1, low: 1)),
                consumer: DeviceSerial(1), consumerApp: AppSerial(1), provider: DeviceSerial(2),
                providerApp: AppSerial(1), fingerprint: [1], expiresAt: start)
        }
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE change (number INTEGER)")
            for request in requests {
                memory.note(request, in: db)
                #expect(memory.request(request.serial) == request)
                #expect(memory.committed(request.id) == nil, "it may be taken back")
            }
        }
        let known = requests.filter { memory.committed($0.id) == $0 }
        #expect((1...2).contains(known.count))
        try queue.inDatabase { db in
            try db.inTransaction {
                try db.execute(sql: "INSERT INTO change VALUES (1)")
                for request in known { memory.note(request, in: db) }
                return .rollback
            }
        }
        for request in requests { #expect(memory.request(request.serial) == nil && memory.committed(request.id) == nil) }
    }
}
