import CarillonClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Requests and replies that are under way when the storage directories are moved between two runs.
@Suite(.timeLimit(.minutes(5)))
struct MovedStorageTests {
    private let files = ServiceApplication(app: ServiceScenario.files)

    @Test func `a request and its reply come with their files, where the directories are by then`() async throws {
        let scenario = try await ServiceScenario()
        let directory = scenario.server.directory
        func path(_ name: String) -> String { "\(directory)/\(name)" }
        let content = Data(repeating: 5, count: 200_000)
        let sent = try scenario.file("report.pdf", content)
        let id: String
        do {
            let provider = try await scenario.client(ServiceScenario.files, in: path("provider"))
            let consumer = try await scenario.client(in: path("consumer"))
            try await provider.serviceProvider.offer(name: "Files", version: "1", [ServiceScenario.transfer])
            try await scenario.found(ServiceScenario.files, by: consumer)
            let begun = Mutex(false)
            await provider.serviceProvider.handle(ServiceScenario.transfer) { _ in
                begun.withLock { $0 = true }
                try await Task.sleep(for: .seconds(600))
                return ServiceReply()
            }
            id = try await consumer.serviceClient.send(ServiceScenario.transfer, to: files, attachments: [sent])
            // The files of the request are in the provider's directory.
            try await eventually { begun.withLock { $0 } }
            await provider.stop()
            await consumer.stop()
        }
        for name in ["provider", "consumer"] {
            try FileManager.default.moveItem(atPath: path(name), toPath: path("moved-\(name)"))
        }
        let received = Mutex<[String]>([])
        let provider = try await scenario.client(ServiceScenario.files, of: nil, in: path("moved-provider")) { client in
            await client.serviceProvider.handle(ServiceScenario.transfer) { request in
                received.withLock { $0 = request.attachments }
                return ServiceReply(attachments: request.attachments)
            }
        }
        let consumer = try await scenario.client(of: nil, in: path("moved-consumer"))
        for await reply in consumer.serviceClient.replies {
            #expect(reply.id == id)
            let attachments = try reply.result.get().attachments
            let all = attachments + received.withLock { $0 }
            #expect(all.count == 2)
            for file in all {
                #expect(file.hasPrefix(directory + "/moved-"))
                #expect(try Data(contentsOf: URL(filePath: file)) == content)
            }
            await reply.confirm()
            break
        }
        for client in [consumer, provider] { await client.stop() }
    }
}
