import Foundation
import Synchronization
import TestSupport
import Testing

@testable import CarillonClient

/// Requests with which the process of their provider ends.
@Suite(.timeLimit(.minutes(5)))
struct CrashedRequestTests {
    private static let echo = ServiceMethod("com.example.echo", "1.0", "echo")

    @Test func `after ten starts that ended with the process a handler is not called, and a stop is no such end`()
        async throws
    {
        let scenario = try await ServiceScenario()
        let provider = try await scenario.client(ServiceScenario.files)
        let consumer = try await scenario.client()
        try await provider.serviceProvider.offer(name: "Files", version: "1", [Self.echo])
        try await scenario.found(ServiceScenario.files, by: consumer)
        let box = await provider.serviceProvider.engine.box
        let seen = Mutex<[Int]>([])
        await provider.serviceProvider.handle(Self.echo) { request in
            let starts = try await box.events(after: 0, at: ServiceEngine.now, limit: 1).events.first?.starts
            seen.withLock { $0.append(starts ?? -1) }
            try await Task.sleep(for: .seconds(60))
            return ServiceReply()
        }
        let call = Task {
            try await consumer.serviceClient.call(Self.echo, of: ServiceApplication(app: ServiceScenario.files))
        }
        try await eventually { seen.withLock { $0 } == [1] }
        await provider.stop()
        var stored = try #require(try await box.events(after: 0, at: ServiceEngine.now, limit: 1).events.first)
        #expect(stored.starts == 0)
        stored.starts = HandlerStarts.most - 1
        try await box.begun(stored, atMostOnce: false)

        let events = provider.serviceProvider.events
        try provider.start()
        let error = await #expect(throws: ServiceError.self) { try await call.value }
        #expect(error?.code == .serviceFailed)
        #expect(seen.withLock { $0 }.count == 1)
        for await event in events {
            guard case .handlerCrashed(let method, let application, _) = event else { continue }
            #expect(method == Self.echo && application.device == consumer.deviceID)
            break
        }
        try await eventually { try await box.events(after: 0, at: ServiceEngine.now, limit: 1).events.isEmpty }
    }
}
