import CarillonCore
import CarillonWire
import Dispatch
import HTTPTypes
import Hummingbird
import TestStores
import TestSupport
import Testing

@testable import CarillonServer

/// Whether the server reports that it is ready.
@Suite(.timeLimit(.minutes(5)))
struct ReadinessTests {
    @Test(arguments: [StoreFault.Kind.full, .unavailable])
    func `the server is not ready from the first commit that fails until something can be written`(
        kind: StoreFault.Kind
    ) async throws {
        let routes = try await RouteFixture()
        func ready() async throws -> (Int, String?) {
            let answer = try await routes.request(.get, "/health/ready")
            return (answer.status, answer.code)
        }
        #expect(try await ready() == (200, nil))
        stores.refuseChanges(of: routes.store, with: StoreFault(kind, "no write"))
        // No write was attempted yet.
        #expect(try await ready() == (200, nil))
        #expect(try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.a"}"#).status == 503)
        let code = kind == .full ? "storage_full" : "storage_unavailable"
        for _ in 0..<2 { #expect(try await ready() == (503, code)) }
        #expect(try await routes.request(.get, "/health/live").status == 200)
        stores.refuseChanges(of: routes.store, with: nil)
        // The request itself detects it.
        #expect(try await ready() == (200, nil))
        #expect(try await routes.store.waitingInAll().envelopes == 0)
    }

    @Test func `the server is not ready while a commit does not end for more than 5 seconds`() async throws {
        let routes = try await RouteFixture(store: stores.openKept())
        @Sendable func ready() async throws -> (status: Int, code: String?) {
            let answer = try await routes.request(.get, "/health/ready")
            return (answer.status, answer.code)
        }
        let isMoving = DispatchSemaphore(value: 0)
        let store = routes.store
        stores.onCommit(of: store) { isMoving.wait() }
        let clock = ContinuousClock()
        let begin = clock.now
        async let created = routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.a"}"#)
        // The commit ends also where the test fails.
        defer { isMoving.signal() }
        try await eventually { store.oldestChangeWait > .zero }
        let early = try await ready().status
        // On a busy machine the answer can arrive after the 5 seconds.
        if store.oldestChangeWait < .seconds(5) { #expect(early == 200) }
        try await eventually { try await ready().status == 503 }
        #expect(clock.now - begin > .seconds(5))
        #expect(try await ready().code == "storage_unavailable")
        #expect(try await routes.request(.get, "/health/live").status == 200)
        stores.onCommit(of: store, nil)
        isMoving.signal()
        let answer = try await created
        #expect(answer.status == 201)
        try await eventually { try await ready().status == 200 }
    }

    @Test func `routes beside the HTTP listener are not ready before it is open`() async throws {
        var fixture = try await RouteFixture()
        let routes = Routes(fixture.domain.answers)
        HealthRoutes(
            store: fixture.store, readiness: fixture.readiness, gateways: fixture.domain.gateways, isOnOwnListener: true
        ).add(to: routes)
        fixture.responder = routes.router().buildResponder()
        let early = try await fixture.request(.get, "/health/ready")
        #expect(early.status == 503 && early.code == "listener_closed")
        #expect(try await fixture.request(.get, "/health/live").status == 200)
        fixture.readiness.beganListening()
        #expect(try await fixture.request(.get, "/health/ready").status == 200)
    }

    @Test func `a store that does not answer is reported in time`() async throws {
        let store = try await stores.open()
        let probe = StoreProbe(store, limit: .seconds(12))
        #expect(await probe.fault() == nil)
        let isMoving = DispatchSemaphore(value: 0)
        stores.onCommit(of: store) { isMoving.wait() }
        // A store in memory has one connection for reading and writing.
        async let work: Void = store.noteServed(1)
        defer { isMoving.signal() }
        try await eventually { store.oldestChangeWait > .zero }
        let fault = await probe.fault()
        #expect(fault?.kind == .unavailable && fault?.message.contains("answered") == true, "\(String(describing: fault))")
        #expect(await probe.fault()?.kind == .unavailable)
        stores.onCommit(of: store, nil)
        isMoving.signal()
        try await work
        try await eventually { await probe.fault() == nil }
    }
}
