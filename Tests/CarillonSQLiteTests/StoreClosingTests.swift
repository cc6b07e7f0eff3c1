import CarillonCore
import CarillonSQLite
import CarillonWire
import Dispatch
import StoreConformance
import Synchronization
import TestStores
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StoreClosingTests {
    @Test func `a place has a closed store only after the store was closed`() async throws {
        let maker = SQLiteStores.file
        let store = try maker.openKept(StoreSettings())
        let place = try #require(maker.place(of: store))
        _ = try await store.createApp(try StoreFixture.appID, at: StoreFixture.start)
        let isClosedBefore = try maker.isClosed(at: place)
        try maker.close(store)
        let (isClosed, isClosedElsewhere) = (try maker.isClosed(at: place), try maker.isClosed(at: place + "-other"))
        #expect(!isClosedBefore && isClosed && !isClosedElsewhere)
    }

    @Test func `calls of a store that closes are completed or refused`() async throws {
        for _ in 0..<20 {
            let fixture = try await StoreFixture(.file)
            let store = fixture.sqlite
            await withTaskGroup(of: Bool.self) { group in
                for index in 0..<60 {
                    group.addTask {
                        do {
                            if index == 30 { try store.close() }
                            if index % 3 == 0 {
                                _ = try await fixture.append(fixture.envelope(Int64(index) + 1))
                            } else {
                                _ = try await fixture.waiting()
                            }
                            return true
                        } catch {
                            return error is StoreFault
                        }
                    }
                }
                for await isRight in group { #expect(isRight) }
            }
            await #expect(throws: StoreFault.self) { try await fixture.waiting() }
            await #expect(throws: StoreFault.self) { try await store.run("SELECT 1") }
        }
    }

    @Test func `calls that need no connection are refused after the store is closed`() async throws {
        let fixture = try await StoreFixture(.file)
        let (store, device) = (fixture.sqlite, fixture.device.serial)
        let registration = try #require(try await store.registration(of: device))
        _ = try await store.registryVersion()
        _ = try await store.writeRegistration(.nothing, decidedOn: registration, at: StoreFixture.start)
        try store.close()
        await #expect(throws: StoreFault.self) { try await store.registryVersion() }
        await #expect(throws: StoreFault.self) {
            try await store.writeRegistration(.nothing, decidedOn: registration, at: StoreFixture.start)
        }
    }

    @Test func `earlier calls are completed, however long they take`() async throws {
        let store = try await StoreFixture(.file).sqlite
        let slow = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300000) SELECT max(n) FROM c"
        let questions = Array(repeating: slow, count: 4) + Array(repeating: "SELECT 300000", count: 100)
        let closing = AsyncStream.makeStream(of: Result<Void, any Error>.self)
        let answers = await together(questions.map { question in { try await store.numbers(question) } }) {
            DispatchQueue.global().async {
                closing.continuation.yield(Result { try store.close() })
                closing.continuation.finish()
            }
        }
        for answer in answers {
            let numbers = try answer.get()
            #expect(numbers == [300_000])
        }
        for await closed in closing.stream { try closed.get() }
    }

    @Test func `a store waits for its last commit`() async throws {
        let store = try await StoreFixture(.file).sqlite
        let (isThere, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        store.onCommit {
            isThere.signal()
            goesOn.wait()
        }
        async let written: Void = store.run("CREATE TABLE last (n)")
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                isThere.wait()
                continuation.resume()
            }
        }
        let isClosed = Atomic(false)
        async let closed: Void = withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                let result = Result { try store.close() }
                isClosed.store(true, ordering: .sequentiallyConsistent)
                continuation.resume(with: result)
            }
        }
        try await Task.sleep(for: .milliseconds(50))
        let wasClosed = isClosed.load(ordering: .sequentiallyConsistent)
        #expect(!wasClosed)
        goesOn.signal()
        try await written
        try await closed
    }
}
