import CarillonWire
import Foundation
import Synchronization
import Testing

@testable import CarillonClient

/// Responses without content, of servers that name themselves and of servers of earlier versions.
@Suite(.timeLimit(.minutes(5)))
struct ServerRecognitionTests {
    /// Answers each DELETE with 204, and each GET with the description of a server.
    private final class Server: ClientTransport {
        /// Of each answer to DELETE, in order; after the last one, nil.
        private let names: Mutex<[String?]>
        private let description: WebAnswer
        let descriptions = Mutex(0)

        init(names: [String?] = [], description: WebAnswer) {
            self.names = Mutex(names)
            self.description = description
        }

        func withConnection(
            to address: WebAddress, _ body: (WebSocketConnection) async -> Void
        ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            guard request.method == .get else {
                let name = names.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                return WebAnswer(status: 204, body: Data(), server: name)
            }
            descriptions.withLock { $0 += 1 }
            return description
        }
    }

    private static func description(server: String?) -> WebAnswer {
        let body = #"{"server":"s","socket":"ws://host/","endpoints":"http://host/push/"}"#
        return WebAnswer(status: 200, body: Data(body.utf8), contentType: "application/json", server: server)
    }

    private func isDone(_ recognition: ServerRecognition, _ server: Server) async throws -> Bool {
        let address = try #require(WebAddress(http: "http://host/v1/device"))
        let request = WebRequest(method: .delete, address: address, answerLimit: 1000)
        let api = ServerAPI("http://host", over: server, recognition: recognition)
        let answer = await api.send(request, expecting: .noContent)
        if case .success = answer { return true }
        return false
    }

    @Test func `a 204 of a server that names itself needs the name`() async throws {
        let server = Server(names: [nil, "s", nil], description: Self.description(server: "s"))
        let recognition = ServerRecognition()
        #expect(try await !isDone(recognition, server))
        #expect(server.descriptions.withLock { $0 } == 1)
        #expect(try await isDone(recognition, server))
        #expect(try await !isDone(recognition, server))
        #expect(server.descriptions.withLock { $0 } == 1, "the name is known")
    }

    @Test func `a 204 of a server of an earlier version needs no name`() async throws {
        let server = Server(description: Self.description(server: nil))
        let recognition = ServerRecognition()
        #expect(try await isDone(recognition, server))
        #expect(try await isDone(recognition, server))
        #expect(server.descriptions.withLock { $0 } == 1)
    }

    @Test func `a server that had no name is one that has a name after an update`() async throws {
        let server = Server(names: [nil, "s", nil], description: Self.description(server: nil))
        let recognition = ServerRecognition()
        #expect(try await isDone(recognition, server))
        #expect(try await isDone(recognition, server))
        #expect(try await !isDone(recognition, server))
    }

    @Test func `a server that does not know the address of its description names itself or does not`() async throws {
        let body = try JSONEncoder().encode(ProblemDocument(Refusal(.notFound, "why")))
        let refusal = WebAnswer(status: 404, body: body, contentType: ProblemDocument.mediaType)
        #expect(try await isDone(ServerRecognition(), Server(description: refusal)))
    }

    @Test(arguments: RelayAnswer.allCases)
    func `a relay that answers everything is never the server`(relay: RelayAnswer) async throws {
        let server = Server(description: relay.web)
        let recognition = ServerRecognition()
        #expect(try await !isDone(recognition, server))
        #expect(try await !isDone(recognition, server))
        #expect(server.descriptions.withLock { $0 } == 2, "nothing is known of it")
    }

    @Test(arguments: [("0", 0), ("7", 7), ("86400", 10), ("Fri, 31 Jan 2020 23:59:59 GMT", 0)])
    func `a maintenance page cannot set a wait beyond the longest of the back-off`(
        _ value: String, _ seconds: Int
    ) async throws {
        let page = WebAnswer(
            status: 503, retryAfter: value, body: Data("<html>".utf8), contentType: "text/html")
        let address = try #require(WebAddress(http: "http://host/v1/server"))
        let request = WebRequest(method: .get, address: address, answerLimit: 1000)
        let api = ServerAPI(
            "http://host", over: Server(description: page), backOff: .init(initial: .seconds(1), maximum: .seconds(10)))
        let answer = await api.send(request, expecting: .json(200, as: ServerBody.self))
        guard case .foreign(_, let wait) = answer else {
            Issue.record("the page is not the server's")
            return
        }
        #expect(wait == .seconds(seconds))
    }
}
