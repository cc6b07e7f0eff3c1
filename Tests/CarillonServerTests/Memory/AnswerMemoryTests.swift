import CarillonCore
import CarillonWire
import Synchronization
import Testing

@testable import CarillonServer

/// The memory of answers, without a server.
@Suite(.timeLimit(.minutes(1)))
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

    @Test func `a short answer is not counted, and longer ones up to what there is`() async throws {
        let memory = AnswerMemory(bytes: 10_000, scheduler: impatient)
        #expect(try await memory.place(for: 4096, of: nil, or: nil) == nil)
        let first = try await memory.place(for: 6000, of: nil, or: nil)
        #expect(memory.used == 6000)
        #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil) } == .overloaded)
        first?.giveBack()
        #expect(memory.used == 0)
        #expect(await refusal { try await memory.place(for: 4097, of: nil, or: nil) } == nil)
    }

    @Test func `a device has two large answers at a time, and a key eight`() async throws {
        let memory = AnswerMemory(bytes: 100 << 20, scheduler: impatient)
        let (device, other) = (DeviceSerial(1), DeviceSerial(2))
        var places: [AnswerPlace?] = []
        for _ in 0..<2 { places.append(try await memory.place(for: 65_537, of: device, or: "a")) }
        #expect(await refusal { try await memory.place(for: 65_537, of: device, or: "a") } == .rateLimited)
        #expect(memory.used == 2 * 65_537)
        #expect(try await memory.place(for: 65_536, of: device, or: "a") != nil)
        #expect(try await memory.place(for: 65_537, of: other, or: "a") != nil)
        places[0]?.giveBack()
        #expect(await refusal { try await memory.place(for: 65_537, of: device, or: "a") } == nil)
        for _ in 0..<8 { places.append(try await memory.place(for: 65_537, of: nil, or: "b")) }
        #expect(await refusal { try await memory.place(for: 65_537, of: nil, or: "b") } == .rateLimited)
        #expect(await refusal { try await memory.place(for: 65_537, of: nil, or: "c") } == nil)
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
        let first = try #require(try await memory.part { 1 })
        let second = Task { try await memory.part { reads.add() } }
        while waits.value == 0 { await Task.yield() }
        #expect(reads.value == 1)
        first.1.giveBack()
        #expect(try await second.value?.0 == 2)
    }

    @Test func `what is empty takes no room`() async throws {
        let memory = AnswerMemory(bytes: 1, scheduler: impatient)
        let all = try #require(try await memory.part { 1 })
        let none = try await memory.part { () -> Int? in nil }
        #expect(none == nil)
        #expect(await refusal { try await memory.part { 1 } } == .overloaded)
        all.1.giveBack()
        #expect(memory.used == 0)
    }
}
