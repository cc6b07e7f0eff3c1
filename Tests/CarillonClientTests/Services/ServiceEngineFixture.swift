import CarillonBasics
import CarillonWire
import Foundation
import Logging
import Synchronization
import TestSupport

@testable import CarillonClient

/// An engine whose storage is real, and whose server answers what a test says.
final class ServiceEngineFixture: Sendable {
    /// Answers by the beginning of the method and the path; without an answer it cannot be reached.
    final class Server: ClientTransport {
        let answers = Mutex<[String: (status: Int, body: String)]>([:])
        let asked = Mutex<[String]>([])

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func ask(_ question: WebQuestion) async throws(TransportFault) -> WebAnswer {
            let path = question.method.rawValue + " " + question.address.text.dropFirst("http://127.0.0.1:1".count)
            asked.withLock { $0.append(String(path)) }
            let answer = answers.withLock { answers in answers.first { path.hasPrefix($0.key) }?.value }
            guard let answer else { throw TransportFault(.unreachable, nil) }
            return WebAnswer(
                status: answer.status, body: Data(answer.body.utf8),
                contentType: answer.status >= 400 ? ProblemDocument.mediaType : "application/json", server: "server-1")
        }
    }

    private struct NoFiles: FileTransport {
        func exchange(
            _ question: FileQuestion, sent: @escaping @Sendable (Int64) -> Void,
            received: @escaping @Sendable (FileAnswer, Data) async throws(PushError) -> Void
        ) async throws -> FileAnswer { throw TransportFault(.unreachable, nil) }
    }

    static let own = String(repeating: "1", count: 32)
    static let other = ServicePeer(app: "com.example.files", device: String(repeating: "2", count: 32))

    let directory: TemporaryDirectory
    let server: Server
    let store: ClientStore
    let engine: ServiceEngine
    let client: ServiceClient
    let box: ServiceBox

    init(in directory: TemporaryDirectory = TemporaryDirectory()) async throws {
        let server = Server()
        self.directory = directory
        self.server = server
        let store = try ClientStore(directory: directory.path)
        self.store = store
        _ = try store.load(server: "http://127.0.0.1:1", app: "com.example.app")
        let identity = DeviceIdentity(device: Self.own, credential: "c", socket: "ws://127.0.0.1:1")
        try await store.inStep { try StoreChange.saveIdentity(identity).apply(to: $0) }
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let backOff = PushClient.BackOff(initial: .milliseconds(1), maximum: .milliseconds(5))
        let runner = SessionRunner(
            store: store,
            session: ClientSession(.init(), restoring: try store.load(server: "http://127.0.0.1:1", app: "com.example.app")),
            logger: logger)
        let box = ServiceBox(store: store)
        self.box = box
        let transfers = TransferServer(
            base: "http://127.0.0.1:1", transport: NoFiles(), backOff: backOff, logger: logger
        ) { "c" }
        let engine = ServiceEngine(
            runner: runner, app: "com.example.app", box: box,
            server: ServiceServer(base: "http://127.0.0.1:1", transport: server, backOff: backOff, asks: runner.asks) {
                identity
            },
            files: AttachmentStore(directory: directory.path + "/services", server: transfers),
            inbox: MessageFiles(root: directory.path + "/Inbox"), logger: logger)
        runner.setScopeListener { [weak engine] in engine?.scopeChanged() }
        self.engine = engine
        client = ServiceClient(engine: engine)
    }

    /// The id of a request.
    static func id(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    static func call(_ id: String) -> StoredCall {
        StoredCall(
            id: id, app: other.app, device: other.device, service: "com.example.x", version: "1", method: "m",
            deadlineSeconds: 60, foreground: "none", key: "k", hash: Data([1]), attachments: [], parameters: "null",
            files: [])
    }

    /// Stores a request that the server has.
    func ask(_ number: Int) async throws -> String {
        let id = Self.id(number)
        try await box.save(Self.call(id), body: [1], claiming: [], keptUntil: ServiceEngine.now + 1_000_000)
        try await box.sent(id)
        return id
    }

    /// The server says that the device belongs to a user.
    func become(_ user: String) async throws {
        try await engine.runner.perform { session, context in
            guard let identity = session.identity else { return [] }
            return session.userTaken(.signedIn("t"), of: identity, as: user, at: context.now)
        }
    }

    func receive(_ event: ServiceEvent) async throws {
        let body = event.body
        try await engine.runner.perform { _, _ in [.write(.saveServiceEvent(body)), .tellServices] }
    }

    /// Runs the engine as long as some work takes.
    func running(_ work: () async throws -> Void) async throws {
        let run = Task { [engine] in await engine.run() }
        do {
            try await work()
        } catch {
            run.cancel()
            await run.value
            throw error
        }
        run.cancel()
        await run.value
    }
}

/// Notes the results that it is told.
final class NotingServiceClientDelegate: ServiceClientDelegate {
    let results = Mutex<[(id: String, result: Result<ServiceReply, ServiceError>)]>([])
    let removed = Mutex<[String]>([])

    func serviceClient(
        _ client: ServiceClient, didReceiveFrom application: ServiceApplication,
        _ result: Result<ServiceReply, ServiceError>, id: String
    ) {
        results.withLock { $0.append((id, result)) }
    }

    func serviceClient(_ client: ServiceClient, didRemoveResultFrom application: ServiceApplication, id: String) {
        removed.withLock { $0.append(id) }
    }

    var ids: [String] { results.withLock { $0.map(\.id) } }
}
