import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

/// The memory of answers, without a server.
@Suite(.timeLimit(.minutes(5)))
struct AnswerMemoryTests {
    /// Waits do not last.
    private let impatient = Scheduler { _, work in work() }

    private func refusal<Value>(_ work: () async throws -> Value) async -> ErrorCode? {
        do {
            _ = try await work()
            return nil
        } catch {
            return (error as? Refusal)?.code
        }
    }

    @Test func `a short answer is not counted, and longer ones up to the available memory`() async throws {
        let memory = AnswerMemory(bytes: 10_000, scheduler: impatient)
        #expect(try await memory.place(for: 4096, of: nil, or: nil, from: nil) == nil)
        let first = try await memory.place(for: 6000, of: nil, or: nil, from: nil)
        #expect(memory.used == 6000)
        #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil, from: nil) } == .overloaded)
        first?.release()
        #expect(memory.used == 0)
        #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil, from: nil) } == nil)
    }

    @Test func `a device has two large answers at a time, and a key eight`() async throws {
        let memory = AnswerMemory(bytes: 100 << 20, scheduler: impatient)
        let (device, other) = (DeviceSerial(1), DeviceSerial(2))
        var places: [AnswerReservation?] = []
        for _ in 0..<2 { places.append(try await memory.place(for: 65_537, of: device, or: "a", from: nil)) }
        #expect(await refusal { try await memory.place(for: 65_537, of: device, or: "a", from: nil) } == .rateLimited)
        #expect(memory.used == 2 * 65_537)
        #expect(try await memory.place(for: 65_536, of: device, or: "a", from: nil) != nil)
        #expect(try await memory.place(for: 65_537, of: other, or: "a", from: nil) != nil)
        places[0]?.release()
        #expect(await refusal { try await memory.place(for: 65_537, of: device, or: "a", from: nil) } == nil)
        for _ in 0..<8 { places.append(try await memory.place(for: 65_537, of: nil, or: "b", from: nil)) }
        #expect(await refusal { try await memory.place(for: 65_537, of: nil, or: "b", from: nil) } == .rateLimited)
        #expect(await refusal { try await memory.place(for: 65_537, of: nil, or: "c", from: nil) } == nil)
        #expect(memory.largeAnswers(of: device) == 1)
    }

    private final class Count: Sendable {
        private let count = Atomic<Int>(0)
        var value: Int { count.load(ordering: .relaxed) }
        func add() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
    }

    @Test func `a part that finds no room is forgotten, and read again when there is some`() async throws {
        let (waits, reads) = (Count(), Count())
        let memory = AnswerMemory(bytes: AnswerMemory.bytesOfPart, scheduler: Scheduler { _, _ in _ = waits.add() })
        let all = AnswerMemory.bytesOfPart
        let first = try #require(try await memory.part(for: nil, bytes: { _ in all }) { 1 })
        let second = Task { try await memory.part(for: nil, bytes: { _ in 5000 }) { reads.add() } }
        while waits.value == 0 { await Task.yield() }
        #expect(reads.value == 1)
        first.1?.release()
        let read = try #require(try await second.value)
        #expect(read.0 == 2)
        #expect(memory.used == 5000)
        read.1?.release()
        #expect(memory.used == 0)
    }

    @Test func `an empty or short answer takes no memory`() async throws {
        let memory = AnswerMemory(bytes: 1, scheduler: impatient)
        let all = try #require(try await memory.part(for: nil, bytes: { _ in 4097 }) { 1 })
        let none = try await memory.part(for: nil, bytes: { _ in 4097 }) { () -> Int? in nil }
        #expect(none == nil)
        #expect(try await memory.part(for: nil, bytes: { _ in 4096 }) { 1 }?.1 == nil)
        #expect(await refusal { try await memory.part(for: nil, bytes: { _ in 4097 }) { 1 } } == .overloaded)
        all.1?.release()
        #expect(memory.used == 0)
    }

    @Test func `the answers to one address take a quarter of the memory`() async throws {
        let memory = AnswerMemory(bytes: 4 * AnswerMemory.bytesOfPart, scheduler: impatient)
        let (address, same) = (try #require(NetworkAddress("2001:db8::1")), try #require(NetworkAddress("2001:db8::2")))
        let half = AnswerMemory.bytesOfPart / 2
        let first = try await memory.place(for: half, of: nil, or: nil, from: address)
        let second = try await memory.place(for: half, of: nil, or: nil, from: same)
        #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil, from: address) } == .rateLimited)
        #expect(
            await refusal { try await memory.part(for: same, bytes: { _ in 4097 }) { 1 } } == .rateLimited)
        #expect(memory.used == 2 * half)
        for other in [NetworkAddress("192.0.2.1"), NetworkAddress("127.0.0.1"), nil] {
            #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil, from: other) } == nil)
        }
        first?.shrink(to: half - 5000)
        #expect(await refusal { try await memory.place(for: 5000, of: nil, or: nil, from: address) } == nil)
        first?.release()
        first?.release()
        second?.release()
        // The refused answers used nothing of the quota.
        #expect(try await memory.place(for: 2 * half, of: nil, or: nil, from: address) != nil)
    }

    @Test func `an answer that does not fit uses nothing of its address's quota`() async throws {
        let memory = AnswerMemory(bytes: 4 * AnswerMemory.bytesOfPart, scheduler: impatient)
        let address = try #require(NetworkAddress("192.0.2.1"))
        let all = try await memory.place(for: 4 * AnswerMemory.bytesOfPart, of: nil, or: nil, from: nil)
        for _ in 0..<3 {
            #expect(
                await refusal { try await memory.place(for: AnswerMemory.bytesOfPart, of: nil, or: nil, from: address) }
                    == .overloaded)
        }
        all?.release()
        #expect(try await memory.place(for: AnswerMemory.bytesOfPart, of: nil, or: nil, from: address) != nil)
    }

    @Test(.timeLimit(.minutes(5))) func `made answers that wait for room are few`() async throws {
        let waits = Count()
        let memory = AnswerMemory(bytes: 10_000, scheduler: Scheduler { _, _ in _ = waits.add() })
        let first = try await memory.place(for: 10_000, of: nil, or: nil, from: nil)
        let waiting = (0..<32).map { _ in Task { try await memory.place(for: 5000, of: nil, or: nil, from: nil)?.release() }
        }
        while waits.value < 32 { await Task.yield() }
        #expect(await refusal { try await memory.place(for: 5000, of: nil, or: nil, from: nil) } == .overloaded)
        first?.release()
        for task in waiting { _ = try await task.value }
        #expect(memory.used == 0)
    }
}
