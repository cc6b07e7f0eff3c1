import Foundation
import Synchronization
import Testing

/// Where a synchronous call stops until its test releases it, for up to a minute.
final class ThreadHold: Sendable {
    private let isReleased = Mutex(false)

    init() {}

    func wait() {
        let end = ContinuousClock.now + .seconds(60)
        while !isReleased.withLock({ $0 }), ContinuousClock.now < end { Thread.sleep(forTimeInterval: 0.002) }
    }

    func release() { isReleased.withLock { $0 = true } }
}

/// Runs the tests that block a thread one after the other. Swift runs tasks on as many threads as there are cores, which can be
/// two: if each is blocked, no thread remains that could release them.
struct HoldsThread: TestTrait, TestScoping {
    private struct Turns {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let turns = Mutex(Turns())

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        await withCheckedContinuation { continuation in
            let isFree = Self.turns.withLock { turns in
                guard turns.isTaken else {
                    turns.isTaken = true
                    return true
                }
                turns.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
        defer {
            let next = Self.turns.withLock { turns -> CheckedContinuation<Void, Never>? in
                turns.isTaken = !turns.waiting.isEmpty
                return turns.isTaken ? turns.waiting.removeFirst() : nil
            }
            next?.resume()
        }
        try await function()
    }
}

extension Trait where Self == HoldsThread {
    /// See ``HoldsThread``.
    static var holdsThread: Self { Self() }
}
