import CarillonWire
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// A call is made for the user that the app named last, and is sent for nobody else.
@Suite(.timeLimit(.minutes(5)))
struct CallOwnerTests {
    private let consumer: ServiceEngineFixture
    private let provider: ServiceEngineFixture

    init() async throws {
        consumer = try await ServiceEngineFixture()
        provider = try await ServiceEngineFixture("com.example.files", number: 2)
        consumer.takeRequests()
        try await consumer.find(provider)
        try await name("ada")
        try await take("ada")
    }

    /// The app names a user.
    private func name(_ user: String) async throws {
        try await consumer.engine.runner.perform { session, context in
            session.userSet(.signedIn(user), at: context.now)
        }
    }

    /// The server accepts the user that the app named.
    private func take(_ user: String) async throws {
        try await consumer.engine.runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userAccepted(.signedIn(user), of: identity, as: user, at: context.now)
        }
    }

    private func refuse(_ user: String) async throws {
        try await consumer.engine.runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userRefused(.signedIn(user), of: identity, PushError(.userRefused, "no"), at: context.now)
        }
    }

    /// Begins a call, and returns when it is on its way.
    private func call() async throws -> Task<ServiceReply, any Error> {
        let call = Task { [client = consumer.client] in
            try await client.call(ServiceEngineFixture.method, of: ServiceApplication(app: "com.example.files"))
        }
        try await eventually { [engine = consumer.engine] in await engine.outgoing.underWay.count == 1 }
        return call
    }

    /// Sends a request of a device without a user: in that time a call without a user is sent.
    private func sendAnother() async throws {
        let other = try await ServiceEngineFixture("com.example.other", number: 3)
        other.takeRequests()
        try await other.find(provider)
        _ = try await other.client.send(ServiceEngineFixture.method, to: ServiceApplication(app: provider.peer.app))
    }

    private func expectMismatch(_ call: Task<ServiceReply, any Error>) async {
        let error = await #expect(throws: ServiceError.self) { try await call.value }
        #expect(error?.code == .userMismatch)
    }

    @Test func `a call for a user that the server does not know yet waits, and is sent for that user`() async throws {
        try await name("bob")
        let call = try await call()
        try await sendAnother()
        #expect(consumer.web.asked.isEmpty)
        try await take("bob")
        try await eventually { [consumer] in try consumer.postedRequests().count == 1 }
        #expect(await consumer.engine.owner.user == "bob")
        call.cancel()
    }

    @Test func `a call for a user that the server refuses is sent for nobody`() async throws {
        try await name("bob")
        let call = try await call()
        try await refuse("bob")
        await expectMismatch(call)
        #expect(consumer.web.asked.isEmpty)
    }

    @Test func `a call for a user that the app replaces is sent for nobody`() async throws {
        try await name("bob")
        let call = try await call()
        try await name("carol")
        try await take("carol")
        await expectMismatch(call)
        #expect(consumer.web.asked.isEmpty)
    }

    @Test func `a call that found its provider waits for another user all the same, and a call of the former one ends`()
        async throws
    {
        let first = Task { [client = consumer.client] in
            try await client.call(ServiceEngineFixture.method, of: ServiceApplication(app: "com.example.files"))
        }
        try await eventually { [consumer] in try consumer.postedRequests().count == 1 }
        try await eventually { [engine = consumer.engine] in await engine.outgoing.underWay.isEmpty }
        try await name("bob")
        let second = try await call()
        try await sendAnother()
        #expect(try consumer.postedRequests().count == 1)
        try await take("bob")
        await expectMismatch(first)
        try await eventually { [consumer] in try consumer.postedRequests().count == 2 }
        second.cancel()
    }

    @Test func `iterations do not receive the waiting events of a former user`() async throws {
        let engine = consumer.engine
        let (clients, providers) = await (engine.clientListeners, engine.providerListeners)
        var consumed = consumer.client.events.makeAsyncIterator()
        var provided = consumer.provider.events.makeAsyncIterator()
        let address = ServiceApplication(ServiceEngineFixture.other)
        let error = ServiceError(.storageUnavailable, "no")
        clients.notify([
            .didFinishSending(to: address, attachments: ["/ada"], parameters: "for ada", id: "1"),
            .willStartReceivingFile(from: address, path: "ada", size: 1, id: "1"),
            .didReceive(from: address, .success(ServiceReply("for ada")), id: "1"),
        ])
        providers.notify([
            .willStartReceivingFile(from: address, path: "ada", size: 1, id: "2"), .offerRefused(error),
            .requestFailed(from: address, error, id: "2"),
        ])
        try await name("bob")
        try await take("bob")
        try await eventually { await engine.owner.user == "bob" }
        clients.notify([.identityChanged(address, fingerprint: "for bob")])
        providers.notify([.cancelled(id: "3")])
        let first = await consumed.next()
        if case .identityChanged? = first {} else { Issue.record("the consumer hears of the former user") }
        let refused = await provided.next()
        if case .offerRefused? = refused {} else { Issue.record("the offer is the device's") }
        let cancelled = await provided.next()
        if case .cancelled(id: "3")? = cancelled {} else { Issue.record("the provider hears of the former user") }
    }

    @Test func `no handler is called for the present user while the app names another one`()
        async throws
    {
        let called = Mutex(0)
        await provider.provider.handle(ServiceEngineFixture.method) { _ in
            called.withLock { $0 += 1 }
            return ServiceReply()
        }
        provider.takeRequests()
        let address = ServiceApplication(app: provider.peer.app)
        _ = try await consumer.client.send(ServiceEngineFixture.method, to: address)
        let engine = provider.engine
        let bob = UserChange.signedIn("bob")
        try await engine.runner.perform { session, context in session.userSet(bob, at: context.now) }
        for request in try consumer.postedRequests() { try await provider.receive(request) }
        let run = Task { await engine.run() }
        try await eventually { await engine.isRunning }
        try await sendAnother()
        #expect(called.withLock(\.self) == 0)
        try await engine.runner.perform { session, context in
            guard let identity = session.registration.identity else { return [] }
            return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
        }
        try await eventually { called.withLock(\.self) == 1 }
        run.cancel()
        await run.value
    }

    /// Stores the received requests, and the front requests with their apps.
    private final class RequestDelegate: ServiceProviderDelegate {
        private let noted = Mutex<[String]>([])

        func serviceProvider(_ provider: ServiceProvider, didReceive request: ServiceRequest) {
            noted.withLock { $0.append(request.id) }
        }

        func serviceProvider(_ provider: ServiceProvider, isAskedToFrontBy application: ServiceApplication) {
            noted.withLock { $0.append("front") }
        }

        var all: [String] { noted.withLock(\.self) }
    }

    @Test(arguments: [true, false])
    func `a delegate that waits for a request is not called while the app names another user`(isTaken: Bool) async throws {
        let delegate = RequestDelegate()
        let engine = consumer.engine
        consumer.provider.addDelegate(delegate)
        let providers = await engine.providerListeners
        let application = ServiceApplication(ServiceEngineFixture.other)
        let request = ServiceRequest(
            id: "for ada", consumer: application, method: ServiceEngineFixture.method, parameters: .null, attachments: [],
            foreground: .none, user: nil, deadline: Date.now + 60)
        try await consumer.running {
            try await eventually { await engine.isRunning }
            try await name("bob")
            providers.notify([.didReceive(request)])
            try await sendAnother()
            #expect(delegate.all.isEmpty)
            if isTaken { try await take("bob") } else { try await refuse("bob") }
            try await eventually { await !engine.isBetweenUsers }
            providers.notify([.frontRequested(by: application)])
            try await eventually { delegate.all.last == "front" }
            #expect(delegate.all == (isTaken ? ["front"] : ["for ada", "front"]))
        }
    }

    @Test func `the call of a delegate ends with the run if the server does not answer whether the device has another user`()
        async throws
    {
        let engine = consumer.engine
        try await consumer.running {
            try await eventually { await engine.isRunning }
            try await name("bob")
        }
        let isCalled = await engine.willCallDelegateWithRequest()
        #expect(!isCalled)
        try await take("bob")
        try await eventually { await !engine.isBetweenUsers }
        let isCalledLater = await engine.willCallDelegateWithRequest()
        #expect(isCalledLater)
    }

    @Test
    func `results of the current user wait while the app names another user, and are reported if that user is refused`()
        async throws
    {
        let fixture = try await ServiceEngineFixture()
        let delegate = NotingServiceClientDelegate()
        fixture.client.addDelegate(delegate)
        try await fixture.become("ada")
        try await eventually { await fixture.engine.owner.user == "ada" }
        let bob = UserChange.signedIn("bob")
        try await fixture.engine.runner.perform { session, context in session.userSet(bob, at: context.now) }
        let early = try await fixture.ask(1)
        await fixture.engine.finish(early, .success(ServiceReply("for ada")), nil)
        #expect(try await fixture.box.results().count == 1)
        try await fixture.running {
            let late = try await fixture.ask(2)
            try await fixture.receive(.failed(try #require(ServiceRequestID(late)), code: "deadline_exceeded"))
            try await eventually { await fixture.engine.isRunning }
            try await sendAnother()
            #expect(delegate.ids.isEmpty)
            try await fixture.engine.runner.perform { session, context in
                guard let identity = session.registration.identity else { return [] }
                return session.userRefused(bob, of: identity, PushError(.userRefused, "no"), at: context.now)
            }
            try await eventually { delegate.ids.sorted() == [early, late] }
        }
    }
}
