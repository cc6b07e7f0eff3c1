import CarillonCore
import CarillonWire
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

@Suite(.timeLimit(.minutes(5)))
struct TurnsTests {
    private final class Seen: Sendable {
        let counts = Mutex((underWay: 0, most: 0, done: 0))
    }

    @Test func `work is done one after another, and what was begun is ended though nobody waits for it`() async throws {
        let turns = Turns()
        let seen = Seen()
        let work: @Sendable () async throws -> Void = {
            seen.counts.withLock { counts in
                counts.underWay += 1
                counts.most = max(counts.most, counts.underWay)
            }
            await Task.yield()
            seen.counts.withLock { counts in
                counts.underWay -= 1
                counts.done += 1
            }
        }
        await withTaskGroup { group in
            for number in 0..<50 {
                group.addTask {
                    let caller = Task { try await turns.take(work) }
                    if number % 2 == 0 { caller.cancel() }
                    _ = await caller.result
                }
            }
        }
        try await eventually { seen.counts.withLock { $0.done } == 50 }
        #expect(seen.counts.withLock { $0.most } == 1)
    }

    @Test func `what fails holds up nobody, and its caller hears of it`() async throws {
        let turns = Turns()
        await #expect(throws: Refusal.self) { try await turns.take { throw Refusal(.internalError, "x") } }
        #expect(try await turns.take { 7 } == 7)
    }
}

/// What was read of a text while it was replaced is not kept.
@Suite(.timeLimit(.minutes(5)))
struct AlertTextsTests {
    private final class SlowStore: GatewayStore {
        let document = Mutex(#"{"title":"old"}"#)
        let gate = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let isSlow = Mutex(true)

        func alert(of app: AppSerial) async throws -> String? {
            let read = document.withLock { $0 }
            if isSlow.withLock({ $0 }) { await withCheckedContinuation { gate.value = $0 } }
            return read
        }

        func putCredential(_ credential: GatewayCredential) async throws -> Bool { false }
        func credentials(of app: AppID?) async throws -> [GatewayCredential] { [] }
        func removeCredential(of app: AppID, for environment: PushEnvironment) async throws -> PushLane? { nil }
        func putAlert(_ document: String?, of app: AppID) async throws -> AppSerial? { nil }
    }

    @Test func `a text that was read before it was replaced is read again`() async throws {
        let store = SlowStore()
        let texts = AlertTexts(store: store)
        async let early = texts.text(of: AppSerial(1))
        try await eventually { store.gate.withLock { $0 != nil } }
        store.document.withLock { $0 = #"{"title":"new"}"# }
        texts.forget(AppSerial(1))
        store.isSlow.withLock { $0 = false }
        store.gate.withLock { $0?.resume() }
        #expect(try await early == AlertText(document: #"{"title":"old"}"#))
        #expect(try await texts.text(of: AppSerial(1)) == AlertText(document: #"{"title":"new"}"#))
    }
}

extension Mutex where Value: Sendable {
    fileprivate var value: Value {
        get { withLock { $0 } }
        nonmutating set { withLock { $0 = newValue } }
    }
}
