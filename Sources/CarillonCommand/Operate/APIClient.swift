import AsyncHTTPClient
import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// Speaks to a server's HTTP API for the command line.
struct APIClient: Sendable {
    struct Answer: Sendable {
        var status: Int
        var headers: HTTPHeaders
        var body: Data
    }

    let server: String
    let key: String?
    /// A PEM file of certificate authorities to trust in place of the system's.
    var authority: String?

    /// The clients of the process by the file of their authorities; they live as long as the process.
    private static let clients = Mutex<[String?: HTTPClient]>([:])

    private static func http(trusting authority: String?) throws -> HTTPClient {
        try clients.withLock { clients in
            if let client = clients[authority] { return client }
            let client = try makeClient(trusting: authority)
            clients[authority] = client
            return client
        }
    }

    /// A command that cannot connect reports it, and does not try again.
    private static func makeClient(trusting authority: String?) throws -> HTTPClient {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.timeout.connect = .seconds(10)
        if let authority {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .certificates(try AuthorityOption.certificates(in: authority))
            configuration.tlsConfiguration = tls
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// A value as it stands in a query.
    static func inQuery(_ value: String) -> String {
        let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return value.addingPercentEncoding(withAllowedCharacters: plain) ?? value
    }

    /// The path of the server's Unix socket; nil of one that is reached over a network.
    private var socketPath: String? { server.hasPrefix("unix:") ? String(server.dropFirst("unix:".count)) : nil }

    private var base: String {
        if let socketPath { return "http+unix://\(Self.inQuery(socketPath))" }
        return server.hasSuffix("/") ? String(server.dropLast()) : server
    }

    /// Sends a request and reads the whole answer.
    ///
    /// - Parameters:
    ///   - path: A path of the server, or a whole address.
    ///   - timeout: The time for the request and for the whole answer.
    /// - Throws: ``CommandFault`` with ``ExitStatus/unreachable`` when the answer does not come.
    func send(
        _ method: HTTPMethod, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        timeout: TimeAmount = .seconds(30)
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: path.contains("://") ? path : base + path)
        request.method = method
        if let key { request.headers.add(name: "authorization", value: "Bearer \(key)") }
        // An address of a socket has no host, and a request must have one.
        if socketPath != nil { request.headers.add(name: "host", value: "localhost") }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(body) }
        let place = socketPath == nil ? Self.origin(of: request.url) : server
        let http = try Self.http(trusting: authority)
        // The deadline of a request ends with the head of the answer, and the body could stall.
        return try await withThrowingTaskGroup(of: Answer.self) { group in
            group.addTask { [request] in try await Self.answer(to: request, of: place, by: http) }
            group.addTask {
                try await Task.sleep(for: .nanoseconds(timeout.nanoseconds))
                let seconds = timeout.nanoseconds / 1_000_000_000
                throw CommandFault(ExitStatus.unreachable, "\(place) has not answered within \(seconds) seconds")
            }
            defer { group.cancelAll() }
            guard let answer = try await group.next() else { throw CancellationError() }
            return answer
        }
    }

    /// An address without its path, which can have a token.
    private static func origin(of url: String) -> String {
        url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
    }

    private static func answer(
        to request: HTTPClientRequest, of place: String, by http: HTTPClient
    ) async throws -> Answer {
        let response: HTTPClientResponse
        do {
            response = try await http.execute(request, deadline: .distantFuture)
        } catch {
            throw CommandFault(ExitStatus.unreachable, "\(place) cannot be reached: \(RequestFailure.sentence(error))")
        }
        do {
            let bytes = try await response.body.collect(upTo: 8 << 20)
            return Answer(
                status: Int(response.status.code), headers: response.headers, body: Data(bytes.readableBytesView))
        } catch {
            throw CommandFault(
                ExitStatus.unreachable, "the answer of \(place) cannot be read: \(RequestFailure.sentence(error))")
        }
    }

    /// Sends a body of the API, if there is one, and reads one; a refusal is thrown.
    func call<Result: Decodable>(
        _ method: HTTPMethod, _ path: String, _ body: (some Encodable)?, as type: Result.Type
    ) async throws -> Result {
        let answer = try accepted(
            try await send(
                method, path, headers: body == nil ? [] : [("content-type", "application/json")],
                body: try body.map { Array(try JSONEncoder().encode($0)) }))
        return try JSONDecoder().decode(type, from: answer.body)
    }

    func call<Result: Decodable>(_ method: HTTPMethod, _ path: String, as type: Result.Type) async throws -> Result {
        try await call(method, path, String?.none, as: type)
    }

    /// The answer, when it is one of success; otherwise throws what the problem document says.
    func accepted(_ answer: Answer) throws -> Answer {
        if (200..<300).contains(answer.status) { return answer }
        if let problem = try? JSONDecoder().decode(ProblemDocument.self, from: answer.body) { throw CommandFault(problem) }
        throw CommandFault(
            answer.status >= 500 ? ExitStatus.tryAgain : ExitStatus.refused, "the server answered \(answer.status)")
    }
}
