import CarillonCore
import CarillonSQLite
import CarillonWire
import HTTPTypes
import Testing

/// Whether the server says that it can be sent work.
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
        routes.store.refuseCommits(StoreFault(kind, "no write"))
        // Nobody tried to write yet.
        #expect(try await ready() == (200, nil))
        #expect(try await routes.request(.post, "/v1/apps", key: routes.admin, #"{"id":"com.example.a"}"#).status == 503)
        let code = kind == .full ? "storage_full" : "storage_unavailable"
        for _ in 0..<2 { #expect(try await ready() == (503, code)) }
        #expect(try await routes.request(.get, "/health/live").status == 200)
        routes.store.refuseCommits(nil)
        // The question itself finds out.
        #expect(try await ready() == (200, nil))
        #expect(try await routes.store.waitingInAll().envelopes == 0)
    }
}
