import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Requests between apps of one machine, which do not need the server.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct LocalServiceTests {
    private static let echo = ServiceMethod("com.example.echo", "1.0", "echo")
    private let files = ServiceApplication(app: ServiceScenario.files)

    private func pair(_ scenario: ServiceScenario, _ directory: String) async throws -> (
        consumer: PushClient, provider: PushClient
    ) {
        let provider = try await scenario.client(ServiceScenario.files, local: directory)
        let consumer = try await scenario.client(local: directory)
        await provider.serviceProvider.handle(Self.echo) { ServiceReply($0.parameters) }
        try await provider.serviceProvider.offer(name: "Files", version: "1", [Self.echo])
        try await scenario.found(ServiceScenario.files, by: consumer)
        // The server delivers the first, and so vouches for the consumer.
        #expect(try await consumer.serviceClient.call(Self.echo, of: files, 0).value == 0)
        return (consumer, provider)
    }

    @Test func `an app that was called through the server is called without it, while its data is fresh`() async throws {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario, scenario.server.directory + "/local")
        let address = ServiceApplication(app: files.app, device: provider.serviceProvider.application?.device)
        #expect(try await consumer.serviceClient.call(Self.echo, of: address, 1).value == 1)
        let events = consumer.serviceClient.events
        try await scenario.server.whileStopped { _ in
            for number in 0..<20 as Range<Int64> {
                let reply = try await consumer.serviceClient.call(Self.echo, of: address, .integer(number))
                #expect(reply.value == .integer(number))
            }
            for await event in events {
                guard case .didFinishSending(let application, _, let parameters, _) = event else { continue }
                #expect(application == address && parameters == 0)
                break
            }
            await provider.serviceProvider.handle(Self.echo) { _ in
                try await Task.sleep(for: .seconds(60))
                return ServiceReply()
            }
            let late = await fault { try await consumer.serviceClient.call(Self.echo, of: address, deadline: .seconds(1)) }
            #expect(late?.code == .deadlineExceeded)
            // A request that is not needed any more ends its handler.
            let notified = provider.serviceProvider.events
            let id = try await consumer.serviceClient.send(Self.echo, to: address, 7)
            for await event in notified {
                if case .didReceive(let request) = event, request.id == id { break }
            }
            let cancelled = provider.serviceProvider.events
            #expect(try await !consumer.serviceClient.cancel(id))
            for await event in cancelled {
                if case .cancelled(id: id) = event { break }
            }
        }
        for client in [consumer, provider] { await client.stop() }
    }

    /// If the server is running, it answers that the request is unknown.
    @Test(arguments: [false, true])
    func `a result waits for a consumer that is away, and is delivered without the server`(_ isServerThere: Bool)
        async throws
    {
        let scenario = try await ServiceScenario()
        let (consumer, provider) = try await pair(scenario, scenario.server.directory + "/local")
        let address = ServiceApplication(app: files.app, device: provider.serviceProvider.application?.device)
        let gate = AsyncStream<Void>.makeStream()
        let calls = Mutex(0)
        await provider.serviceProvider.handle(Self.echo) { request in
            calls.withLock { $0 += 1 }
            for await _ in gate.stream { break }
            return ServiceReply(request.parameters)
        }
        let work = { () async throws in
            let id = try await consumer.serviceClient.send(Self.echo, to: address, 9)
            try await eventually { calls.withLock { $0 } == 1 }
            await consumer.stop()
            gate.continuation.yield()
            try await Task.sleep(for: .milliseconds(100))
            try consumer.start()
            for await reply in consumer.serviceClient.replies {
                #expect(reply.id == id)
                #expect(try reply.result.get().value == 9)
                await reply.confirm()
                break
            }
        }
        if isServerThere { try await work() } else { try await scenario.server.whileStopped { _ in try await work() } }
        #expect(calls.withLock { $0 } == 1)
        for client in [consumer, provider] { await client.stop() }
    }

    @Test func `a directory that others can enter is not used`() async throws {
        let scenario = try await ServiceScenario()
        let directory = scenario.server.directory + "/open"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        let (consumer, provider) = try await pair(scenario, directory)
        #expect(try await consumer.serviceClient.call(Self.echo, of: files, 1).value == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
        for client in [consumer, provider] { await client.stop() }
    }

    private func fault(_ work: () async throws -> some Any) async -> ServiceError? {
        do {
            _ = try await work()
            return nil
        } catch {
            return error as? ServiceError
        }
    }
}
