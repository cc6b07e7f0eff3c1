import Testing

@testable import CarillonCore

@Suite(.timeLimit(.minutes(5)))
struct ReadThroughCacheTests {
    private let values = ReadThroughCache<Int, String>(capacity: 10)

    private func value(_ key: Int, _ read: String) async throws -> String {
        try await values.value(of: key) { read }
    }

    @Test func `a value that was read is known until it is forgotten`() async throws {
        #expect(try await value(1, "a") == "a")
        #expect(try await value(1, "b") == "a")
        values.change(1) { $0 += "!" }
        #expect(try await value(1, "b") == "a!")
        values.forget(1)
        #expect(try await value(1, "b") == "b")
    }

    @Test(arguments: ["changed", "forgotten"])
    func `a value that changes while it is read is read again`(_ change: String) async throws {
        let read = try await values.value(of: 1) {
            if change == "changed" { values.change(1) { $0 = "never" } } else { values.forget(1) }
            return "before"
        }
        #expect(read == "before")
        #expect(try await value(1, "after") == "after")
    }

    @Test func `a value is forgotten if it meets a condition, and one that is being read is kept`() async throws {
        #expect(try await value(1, "a") == "a")
        values.forget(1) { $0 == "b" }
        #expect(values.known(1) == "a")
        values.forget(1) { $0 == "a" }
        #expect(values.known(1) == nil)
        _ = try await values.value(of: 1) {
            values.forget(1) { _ in true }
            return "c"
        }
        #expect(values.known(1) == "c")
    }

    @Test func `a change of another key causes no new read`() async throws {
        _ = try await values.value(of: 1) {
            values.forget(2)
            return "a"
        }
        #expect(try await value(1, "b") == "a")
    }

    @Test func `neither of two readers publishes a value from before the change`() async throws {
        _ = try await values.value(of: 1) {
            values.forget(1)
            let second = try await value(1, "new")
            #expect(second == "new")
            return "old"
        }
        #expect(try await value(1, "newest") != "old")
    }

    @Test func `a read that fails leaves nothing behind`() async throws {
        struct Fault: Error {}
        await #expect(throws: Fault.self) { _ = try await values.value(of: 1) { throw Fault() } }
        #expect(try await value(1, "a") == "a")
        #expect(try await value(1, "b") == "a")
    }
}
