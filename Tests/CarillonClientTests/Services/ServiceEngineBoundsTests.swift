import CarillonWire
import Crypto
import Foundation
import TestSupport
import Testing

@testable import CarillonClient

/// The limits of the data that others send to a device.
@Suite(.timeLimit(.minutes(5)))
struct ServiceEngineBoundsTests {
    @Test func `requests beyond the bound are answered that the provider is busy`() async throws {
        #expect(ServiceEngine.mostRequests == 10_000)
        let consumer = try await ServiceEngineFixture()
        let provider = try await ServiceEngineFixture("com.example.files", number: 2, mostRequests: 2)
        try await consumer.find(provider)
        for fixture in [consumer, provider] { fixture.takeRequests() }
        let gate = PendingResult<Void>()
        await provider.provider.handle(ServiceEngineFixture.method) { _ in
            try await gate.value
            return ServiceReply()
        }
        let address = ServiceApplication(app: provider.peer.app)
        var ids: [String] = []
        for _ in 0..<3 { ids.append(try await consumer.client.send(ServiceEngineFixture.method, to: address)) }
        for request in try consumer.postedRequests() { try await provider.receive(request) }
        let runs = [consumer, provider].map { fixture in Task { await fixture.engine.run() } }
        try await eventually { try !provider.postedReplies().isEmpty }
        var events = consumer.client.events.makeAsyncIterator()
        let reply = try #require(try provider.postedReplies().first)
        #expect(reply.id.description == ids[2])
        try await consumer.receive(reply)
        guard case .didReceive(_, .failure(let error), let id)? = await events.next() else {
            Issue.record("another event came")
            return
        }
        #expect(error.code == .providerBusy && id == ids[2])
        // Events within the limit are answered.
        gate.resume(.success(()))
        try await eventually { try provider.postedReplies().count == 3 }
        for run in runs {
            run.cancel()
            await run.value
        }
    }

    @Test func `a key is taken for as long as requests sealed with it can be under way, and not longer`() async throws {
        let fixture = try await ServiceEngineFixture()
        let peer = ServicePeer(app: "com.example.files", device: String(repeating: "2", count: 32))
        let identity = Curve25519.Signing.PrivateKey()
        func bundle(_ until: Int64) throws -> KeyBundle {
            try KeyBundle(
                Curve25519.KeyAgreement.PrivateKey(), named: "0011223344556677", until: until, device: peer.device,
                by: identity)
        }
        let kept = ServiceBox.keptSeconds * 1000
        for seconds in [60, 8 * 86_400] as [Int64] {
            let old = try bundle(ServiceEngine.now - kept - seconds * 1000)
            let error = await #expect(throws: ServiceError.self) {
                try await fixture.engine.authenticate(old, of: peer, user: nil)
            }
            #expect(error?.code == .providerKeyChanged)
        }
        for until in [ServiceEngine.now - kept + 60_000, ServiceEngine.now + 60_000] {
            try await fixture.engine.authenticate(try bundle(until), of: peer, user: nil)
        }
    }
}
