import AsyncHTTPClient
import CarillonBasics
import CarillonWire
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import Synchronization

/// A client of a server's HTTP API for the command line.
struct APIClient: Sendable {
    struct Answer: Sendable {
        var method: HTTPMethod
        /// The address of the request, without its query and without the token of a channel.
        var place: String
        var status: Int
        var headers: HTTPHeaders
        var body: Data
        /// Whether the server is known not to send `Carillon-Server`.
        var isOfNameless = false

        var response: ServerResponse {
            ServerResponse(
                status: status, contentType: headers.first(name: "content-type"),
                server: headers.first(name: HeaderNames.server), body: body)
        }

        /// Whether the body is a JSON object with all of these members.
        func has(_ members: [String]) -> Bool {
            guard case .object(let found)? = JSONValue(parsing: Array(body)) else { return false }
            return members.allSatisfy { name in found.contains { $0.name == name } }
        }

        /// Whether the server accepted a message.
        var isReceipt: Bool {
            status == 201 && headers.contains(name: "location") && headers.contains(name: "ttl")
        }
    }

    let server: String
    let key: String?
    /// A PEM file of certificate authorities that are trusted instead of the system's.
    var authority: String?

    /// The clients of the process, by the file of their certificate authorities. They are kept until the process ends.
    private static let clients = Mutex<[String?: HTTPClient]>([:])

    private static func http(trusting authority: String?) throws -> HTTPClient {
        try clients.withLock { clients in
            if let client = clients[authority] { return client }
            let client = try makeClient(trusting: authority)
            clients[authority] = client
            return client
        }
    }

    /// Creates a client without retries. A command reports a connection fault at once.
    private static func makeClient(trusting authority: String?) throws -> HTTPClient {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.timeout.connect = .seconds(10)
        if let authority {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .certificates(try TrustedFile(authority, of: "--ca").certificates)
            configuration.tlsConfiguration = tls
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Returns a value in the form for a query.
    static func inQuery(_ value: String) -> String {
        let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return value.addingPercentEncoding(withAllowedCharacters: plain) ?? value
    }

    /// The path of the server's Unix socket; nil for a server that is reached over a network.
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
    /// - Throws: ``CommandFault`` with ``ExitStatus/unreachable`` if the answer does not arrive in time.
    func send(
        _ method: HTTPMethod, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        timeout: TimeAmount = .seconds(30)
    ) async throws -> Answer {
        var answer = try await exchange(method, path, headers: headers, body: body, timeout: timeout)
        // Only the header can show that the server sent such a response.
        let isEmpty = answer.status == 204 || answer.body == Data("{}".utf8)
        if isEmpty, !answer.response.isNamed { answer.isOfNameless = await isNameless(path) }
        return answer
    }

    /// Whether the server at an address never sends `Carillon-Server`. This is so if the server returns its description without
    /// the header.
    private func isNameless(_ path: String) async -> Bool {
        let start = path.range(of: "://").flatMap { path[$0.upperBound...].firstIndex { $0 == "/" || $0 == "?" } }
        let origin = path.contains("://") ? String(path[..<(start ?? path.endIndex)]) : base
        let client = APIClient(server: server, key: nil, authority: authority)
        let answer = try? await client.exchange(.GET, origin + "/v1/server", timeout: .seconds(10))
        guard let response = answer?.response, !response.isNamed else { return false }
        switch response.verdict(reading: { $0.json(200, as: ServerBody.self) }) {
        case .success, .refused: return true
        case .unnamed, .foreign: return false
        }
    }

    private func exchange(
        _ method: HTTPMethod, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        timeout: TimeAmount
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: path.contains("://") ? path : base + path)
        request.method = method
        if let key { request.headers.add(name: "authorization", value: "Bearer \(key)") }
        // The address of a Unix socket has no host, but a request requires one.
        if socketPath != nil { request.headers.add(name: "host", value: "localhost") }
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        if let body { request.body = .bytes(body) }
        let place = socketPath == nil ? Self.origin(of: request.url) : server
        let http = try Self.http(trusting: authority)
        // The deadline of a request covers only the head of the answer, and the body could stall.
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

    /// Returns an address without its path, because the path can contain a token.
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
                method: request.method, place: shown(request.url, of: place), status: Int(response.status.code),
                headers: response.headers, body: Data(bytes.readableBytesView))
        } catch {
            throw CommandFault(
                ExitStatus.unreachable, "the answer of \(place) cannot be read: \(RequestFailure.sentence(error))")
        }
    }

    /// Returns an address without its query and without the token of a channel. For a Unix socket the address begins with
    /// `unix:/path`.
    private static func shown(_ url: String, of place: String) -> String {
        let path = url.dropFirst(origin(of: url).count).prefix { $0 != "?" }
        guard let token = path.range(of: "/push/") else { return place + path }
        return place + path[..<token.upperBound] + "…"
    }

    /// Sends a request, with a body if there is one, and reads the body of the response. Throws a refusal.
    ///
    /// - Parameter members: The members that each successful response has, if the type does not require them.
    func call<Result: Decodable>(
        _ method: HTTPMethod, _ path: String, _ body: (some Encodable)?, as type: Result.Type, with members: [String] = []
    ) async throws -> Result {
        let answer = try accepted(
            try await send(
                method, path, headers: body == nil ? [] : [("content-type", "application/json")],
                body: try body.map { Array(try JSONEncoder().encode($0)) }), as: { $0.has(members) })
        return try value(of: answer, as: type)
    }

    func call<Result: Decodable>(
        _ method: HTTPMethod, _ path: String, as type: Result.Type, with members: [String] = []
    ) async throws -> Result {
        try await call(method, path, String?.none, as: type, with: members)
    }

    /// Reads a list page by page.
    ///
    /// - Parameters:
    ///   - member: The member of the answer that contains the elements.
    ///   - limit: The largest number of elements.
    ///   - path: Returns the path of a page, from its size and from the place at which it starts; nil for the first page.
    func list(
        _ member: String, limit: Int = .max, at path: (_ size: Int, _ place: String?) -> String, _ use: (JSONValue) -> Void
    ) async throws {
        var (left, place) = (limit, String?.none)
        repeat {
            let answer = try accepted(try await send(.GET, path(min(left, 500), place)), as: { $0.has([member]) })
            let page = try value(of: answer, as: JSONValue.self)
            guard case .array(let elements)? = page[member] else { throw Self.foreign(answer) }
            elements.forEach(use)
            left -= elements.count
            place = if case .string(let next)? = page["next"] { next } else { nil }
        } while place != nil && left > 0
    }

    /// Returns the answer if it is successful and the server sent it. A successful DELETE request has status 204.
    ///
    /// - Parameter isDocumented: Whether a successful answer has the documented form. It is required for all methods except
    ///   DELETE.
    /// - Throws: ``CommandFault`` with the text of the server's problem document, or with ``ExitStatus/tryAgain`` if another
    ///   program answered instead of the server.
    func accepted(_ answer: Answer, as isDocumented: (Answer) -> Bool = { _ in false }) throws -> Answer {
        let verdict: ServerResponse.Verdict<Void> =
            if answer.method == .DELETE {
                answer.response.verdictOnNoContent(isNameless: answer.isOfNameless)
            } else {
                answer.response.verdict { _ in isDocumented(answer) ? () : nil }
            }
        switch verdict {
        case .success: return answer
        case .refused(let refusal):
            guard let problem = refusal.problem else { throw Self.foreign(answer) }
            throw CommandFault(problem)
        case .unnamed, .foreign: throw Self.foreign(answer)
        }
    }

    /// Reads the body of a successful answer.
    func value<Result: Decodable>(of answer: Answer, as type: Result.Type) throws -> Result {
        guard let value = try? JSONDecoder().decode(type, from: answer.body) else { throw Self.foreign(answer) }
        return value
    }

    static func foreign(_ answer: Answer) -> CommandFault {
        CommandFault(
            ExitStatus.tryAgain,
            "the response of \(answer.place) with status \(answer.status) is not from a Carillon server; a proxy, a login page or another program sent it; check the address, or try again later"
        )
    }
}
