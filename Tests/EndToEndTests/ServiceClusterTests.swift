import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Servers that all users call, and that call them; which devices receive reports of others; and front requests.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ServiceClusterTests {
    private static let ask = ServiceMethod("com.example.ask", "1.0", "ask")

    /// A server's device that answers with its name and the user of the calling device.
    private func server(_ scenario: ServiceScenario, named name: String, _ place: [String]) async throws -> PushClient {
        let client = try await scenario.client(ServiceScenario.files, of: nil)
        await client.serviceProvider.handle(Self.ask) { request in ServiceReply(.string("\(name) \(request.user ?? "-")")) }
        try await client.serviceProvider.offer(name: name, version: "1", [Self.ask])
        let device = try #require(client.serviceProvider.application?.device)
        let arguments = ["apps", "servers", "add", ServiceScenario.files, device, "--server", scenario.server.address]
        #expect(try await run(arguments + ["--key", scenario.admin] + place).status == 0)
        return client
    }

    @Test func `a server is called by every user, and calls their devices`() async throws {
        let scenario = try await ServiceScenario()
        let first = try await server(scenario, named: "first", ["--host", "files.example", "--port", "8443"])
        let second = try await server(scenario, named: "second", ["--priority", "2"])
        let (ada, bob) = (try await scenario.client(of: "ada"), try await scenario.client(of: "bob"))
        try await scenario.found(ServiceScenario.files, by: ada)
        try await eventually {
            try await ada.serviceClient.providers().map { $0.server?.priority } == [1, 2]
        }
        let found = try await ada.serviceClient.providers(of: Self.ask.service, type: .server)
        #expect(found.map(\.type) == [.server, .server])
        #expect(found.map { $0.server?.host } == ["files.example", nil])
        #expect(found.map { $0.server?.port } == [8443, nil])
        #expect(found.map { $0.server?.priority } == [1, 2])
        #expect(try await ada.serviceClient.providers(type: .application).isEmpty)

        let anyone = ServiceApplication(app: ServiceScenario.files)
        #expect(try await ada.serviceClient.call(Self.ask, of: anyone).value == .string("first ada"))
        #expect(try await bob.serviceClient.call(Self.ask, of: anyone).value == .string("first bob"))
        await first.stop()
        try await eventually { try await bob.serviceClient.providers().map(\.isLive) == [true, false] }
        try await Task.sleep(for: .seconds(5.1))
        #expect(try await bob.serviceClient.call(Self.ask, of: anyone).value == .string("second bob"))

        // The server calls the device of a user that it names.
        await bob.serviceProvider.handle(Self.ask) { request in ServiceReply(.string("bob \(request.user ?? "-")")) }
        try await bob.serviceProvider.offer(name: "Bob", version: "1", [Self.ask])
        try await eventually { try await second.serviceClient.providers(user: "bob").contains { $0.type == .application } }
        let ofBob = try #require(
            try await second.serviceClient.providers(user: "bob").first { $0.type == .application })
        #expect(try await second.serviceClient.call(Self.ask, of: ofBob.application).value == .string("bob -"))
        #expect(try await second.serviceClient.providers(user: "ada").allSatisfy { $0.type == .server })
        await #expect { try await ada.serviceClient.providers(user: "bob") } throws: { error in
            (error as? ServiceError)?.code == .callForbidden
        }

        // It is none any more.
        let device = try #require(second.serviceProvider.application?.device)
        let arguments = ["apps", "servers", "remove", ServiceScenario.files, device, "--server", scenario.server.address]
        #expect(try await run(arguments + ["--key", scenario.admin]).status == 0)
        await #expect { try await second.serviceClient.call(Self.ask, of: ofBob.application) } throws: { error in
            (error as? ServiceError)?.code == .applicationNotFound || (error as? ServiceError)?.code == .callForbidden
        }
        #expect(try await bob.serviceClient.providers().map { $0.server?.priority } == [1])
        for client in [second, ada, bob] { await client.stop() }
    }

    @Test func `two people with one phone call a server repeatedly, and are called by it`() async throws {
        let scenario = try await ServiceScenario()
        let server = try await server(scenario, named: "one", [])
        let phone = try await scenario.client(of: "ada")
        await phone.serviceProvider.handle(Self.ask) { _ in ServiceReply("phone") }
        try await phone.serviceProvider.offer(name: "Phone", version: "1", [Self.ask])
        let anyone = ServiceApplication(app: ServiceScenario.files)
        for user in ["ada", "ben", "ada", "ben"] {
            try await phone.device.setUser(nil)
            try await eventually { !phone.device.isUserPending }
            try await scenario.signIn(user, on: phone, of: LiveServer.app)
            try await scenario.found(ServiceScenario.files, by: phone)
            #expect(try await phone.serviceClient.call(Self.ask, of: anyone).value == .string("one \(user)"))
            try await eventually {
                try await server.serviceClient.providers(user: user).contains { $0.type == .application }
            }
            let device = ServiceApplication(app: LiveServer.app, device: phone.serviceProvider.application?.device)
            #expect(try await server.serviceClient.call(Self.ask, of: device).value == "phone")
        }
        let identities = try await server.serviceClient.identities()
        #expect(identities.map(\.user) == ["ada", "ben"])
        #expect(identities.allSatisfy { $0.offeredFingerprint == nil })
        for client in [server, phone] { await client.stop() }
    }

    @Test func `devices that come and go are reported, with name and picture`() async throws {
        let scenario = try await ServiceScenario()
        let consumer = try await scenario.client()
        var changes = consumer.serviceClient.providerChanges.makeAsyncIterator()
        #expect(await changes.next() == [])
        let provider = try await scenario.client(ServiceScenario.files)
        let picture = Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Array(repeating: 7, count: 30_000))
        try await provider.serviceProvider.offer(name: "Files", version: "2.1", icon: picture, [Self.ask])
        let found = try #require(await changes.next())
        #expect(found.map(\.name) == ["Files"])
        #expect(found.map(\.version) == ["2.1"])
        #expect(try await consumer.serviceClient.icon(of: found[0]) == picture)
        try await provider.serviceProvider.offer(name: "Folders", version: "2.1", [Self.ask])
        #expect(await changes.next()?.map(\.name) == ["Folders"])
        try await scenario.signIn("bob", on: provider, of: ServiceScenario.files)
        #expect(await changes.next() == [])
        try await scenario.signIn("ada", on: provider, of: ServiceScenario.files)
        #expect(await changes.next()?.map(\.name) == ["Folders"])
        try await provider.signOut()
        #expect(await changes.next() == [])
        for client in [consumer, provider] { await client.stop() }
    }

    @Test func `a connected app receives a front request, and another does not`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = (try await scenario.client(), try await scenario.client(ServiceScenario.files))
        try await provider.serviceProvider.offer(name: "Files", version: "1", [Self.ask])
        try await scenario.found(ServiceScenario.files, by: consumer)
        var asked = provider.serviceProvider.events.makeAsyncIterator()
        let address = try #require(provider.serviceProvider.application)
        try await consumer.serviceClient.bringToFront(address)
        guard case .frontRequested(let application)? = await asked.next() else {
            Issue.record("It was not asked to the front")
            return
        }
        #expect(application == consumer.serviceProvider.application)
        await provider.stop()
        try await eventually { try await consumer.serviceClient.providers().map(\.isLive) == [false] }
        await #expect { try await consumer.serviceClient.bringToFront(address) } throws: { error in
            (error as? ServiceError)?.code == .providerSuspended
        }
        // None of it arrives late.
        let later = Mutex(0)
        let events = provider.serviceProvider.events
        let listening = Task { for await _ in events { later.withLock { $0 += 1 } } }
        try provider.start()
        try await eventually { try await consumer.serviceClient.providers().map(\.isLive) == [true] }
        try await Task.sleep(for: .milliseconds(300))
        #expect(later.withLock { $0 } == 0)
        listening.cancel()
        for client in [consumer, provider] { await client.stop() }
    }
}
