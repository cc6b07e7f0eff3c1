import CarillonBasics
import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// Replies to requests of the same machine.
@Suite(.timeLimit(.minutes(5)))
struct LocalReplyTests {
    @Test func `a reply through the server waits for the time that the server sets`() async throws {
        let fixture = try await ServiceEngineFixture(local: LocalSockets(directory: "/nowhere"))
        try fixture.web.refuse("POST /v1/services/requests", .overloaded)
        fixture.web.retryAfter.withLock { $0 = "30" }
        let reply = SealedContent(
            keyID: String(repeating: "0", count: 16), sender: try await fixture.engine.keysForOthers().bundle,
            encapsulated: [UInt8](repeating: 1, count: 32), body: [UInt8](repeating: 1, count: 16), files: 0, fileBytes: 0)
        let bytes = JSONValue.object(reply.members).bytes
        let id = try #require(ServiceRequestID(String(repeating: "0", count: 32)))
        let consumer = ServicePeer(app: "com.example.other", device: String(repeating: "2", count: 32))
        let error = await #expect(throws: ServiceError.self) {
            try await fixture.engine.replyLocally(bytes, to: id, consumer, until: .now + 0.5)
        }
        #expect(error?.code == .deadlineExceeded)
        let count = fixture.web.asked.count { $0.hasSuffix("/reply") }
        #expect((1...3).contains(count), "asked \(count) times before the deadline")
    }
}
