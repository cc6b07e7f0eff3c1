import AsyncHTTPClient
import CarillonBasics
import NIOCore
import NIOHTTP1
import NIOPosix

/// The requests of the phones and senders of a scenario.
final class ScenarioHTTP: Sendable {
    struct Request: Sendable {
        var method: HTTPMethod
        var path: String
        var headers: HTTPHeaders
        var body: [UInt8]

        init(
            _ method: HTTPMethod, _ path: String, key: String? = nil, headers: HTTPHeaders = [:], _ body: String = ""
        ) {
            self.method = method
            self.path = path
            self.headers = headers
            if let key { self.headers.replaceOrAdd(name: "authorization", value: "Bearer \(key)") }
            self.body = Array(body.utf8)
        }
    }

    struct Answer: Sendable, CustomStringConvertible {
        var status: Int
        var headers: HTTPHeaders
        var body: [UInt8]

        var json: JSONValue? { JSONValue(parsing: body) }
        /// Whether the same request can succeed later.
        var isRefusedForNow: Bool { status == 503 || status == 429 }
        var description: String { "\(status) \(String(decoding: body.prefix(300), as: UTF8.self))" }

        subscript(name: String) -> String? {
            if case .string(let text)? = json?[name] { text } else { nil }
        }
    }

    /// A request was not answered as it must be.
    struct Unexpected: Error, CustomStringConvertible {
        let description: String

        init(_ request: Request, _ answer: Answer) { description = "\(request.method) \(request.path): \(answer)" }
    }

    private let client: HTTPClient
    private let address: String
    /// How long a refused request is repeated.
    private static let patience = Duration.seconds(30)

    init(port: Int) {
        var configuration = HTTPClient.Configuration()
        // Polls and streams keep their connections.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 200
        client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
        address = "http://127.0.0.1:\(port)"
    }

    func close() async throws { try await client.shutdown() }

    /// Sends a request, and returns when the head of its response is there.
    func begin(_ request: Request) async throws -> HTTPClientResponse {
        var sent = HTTPClientRequest(url: address + request.path)
        sent.method = request.method
        sent.headers = request.headers
        if !request.body.isEmpty { sent.body = .bytes(request.body) }
        return try await client.execute(sent, timeout: .minutes(30))
    }

    func once(_ request: Request) async throws -> Answer {
        let response = try await begin(request)
        let bytes = try await response.body.collect(upTo: 8 << 20)
        return Answer(
            status: Int(response.status.code), headers: response.headers, body: Array(bytes.readableBytesView))
    }

    /// Repeats a request as long as it is refused for now, at most for thirty seconds.
    ///
    /// It waits for a shorter time than the server sets, so that it meets more moves.
    func repeating(_ request: Request) async throws -> Answer {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            let answer = try await once(request)
            guard answer.isRefusedForNow, .now < deadline else { return answer }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// The same, of a request that must have one of these statuses.
    func repeating(_ request: Request, expecting statuses: Int...) async throws -> Answer {
        let answer = try await repeating(request)
        guard statuses.contains(answer.status) else { throw Unexpected(request, answer) }
        return answer
    }
}
