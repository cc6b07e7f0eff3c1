import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Requests that arrive while the app is woken in the background.
@Suite(.timeLimit(.minutes(5)))
struct ServiceWakeTests {
    @Test func `a wake lasts until requests are answered, and the next one continues the requests that the limit ended`()
        async throws
    {
        let scenario = try await ServiceScenario()
        let provider = try await scenario.client(ServiceScenario.files)
        let consumer = try await scenario.client()
        let calls = Mutex(0)
        await provider.serviceProvider.handle(ServiceScenario.transfer) { request in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            try await Task.sleep(for: isFirst ? .seconds(600) : .milliseconds(500))
            return ServiceReply("done", attachments: request.attachments)
        }
        try await provider.serviceProvider.offer(name: "Files", version: "1", [ServiceScenario.transfer])
        try await scenario.found(ServiceScenario.files, by: consumer)
        await provider.stop()
        let sent = try scenario.file("a.bin", Data(count: 300_000))
        let id = try await consumer.serviceClient.send(
            ServiceScenario.transfer, to: .init(app: ServiceScenario.files), attachments: [sent])
        #expect(await provider.handleWake(within: .seconds(15)) == .newData)
        #expect(calls.withLock { $0 } == 1)
        // It ends when there is nothing to do: its limit is longer than that of the suite.
        #expect(await provider.handleWake(within: .seconds(3600)) == .newData)
        #expect(calls.withLock { $0 } == 2)
        for await reply in consumer.serviceClient.replies {
            #expect(reply.id == id)
            #expect(try reply.result.get().value == "done")
            await reply.confirm()
            break
        }
        #expect(await provider.handleWake(within: .seconds(30)) == .noData)
        await consumer.stop()
    }

    @Test func `a wake ends at its limit though a handler ignores its cancellation`() async throws {
        let scenario = try await ServiceScenario()
        let provider = try await scenario.client(ServiceScenario.files)
        let consumer = try await scenario.client()
        let calls = Mutex(0)
        let gate = AsyncStream<Void>.makeStream()
        await provider.serviceProvider.handle(ServiceScenario.transfer) { _ in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            // The task inside is not cancelled.
            if isFirst { await Task { for await _ in gate.stream {} }.value }
            try Task.checkCancellation()
            return ServiceReply("done")
        }
        try await provider.serviceProvider.offer(name: "Files", version: "1", [ServiceScenario.transfer])
        try await scenario.found(ServiceScenario.files, by: consumer)
        await provider.stop()
        let sent = try scenario.file("a.bin", Data(count: 10))
        let id = try await consumer.serviceClient.send(
            ServiceScenario.transfer, to: .init(app: ServiceScenario.files), attachments: [sent])
        _ = await provider.handleWake(within: .seconds(15))
        #expect(calls.withLock { $0 } == 1)
        // The next run begins when the handler has ended.
        async let next = provider.handleWake(within: .seconds(120))
        try await Task.sleep(for: .milliseconds(500))
        #expect(calls.withLock { $0 } == 1)
        gate.continuation.finish()
        #expect(await next == .newData)
        #expect(calls.withLock { $0 } == 2)
        for await reply in consumer.serviceClient.replies {
            #expect(reply.id == id)
            await reply.confirm()
            break
        }
        await consumer.stop()
    }
}
