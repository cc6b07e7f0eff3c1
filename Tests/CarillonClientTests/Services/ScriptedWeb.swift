import CarillonWire
import Foundation
import Synchronization

@testable import CarillonClient

/// A server with the answers of a test, to requests and to transfers of files. A request without an answer is unreachable.
final class ScriptedWeb: ClientTransport, FileTransport {
    typealias Answer = (status: Int, body: String)

    private struct State {
        var answers: [(start: String, answer: @Sendable ([UInt8]) async -> Answer?)] = []
        var files: [String: @Sendable (FileRequest) async throws -> WebAnswer] = [:]
        var asked: [(path: String, body: [UInt8])] = []
        /// The bytes of attachments, by their id.
        var attachments: [String: Data] = [:]
    }

    static let base = "http://127.0.0.1:1"
    /// The id of the server in each answer.
    static let server = "0123456789abcdef0123456789abcdef"
    private let state = Mutex(State())
    /// The `Retry-After` of each answer to a request.
    let retryAfter = Mutex<String?>(nil)

    /// Answers all requests with a prefix, such as `POST /v1/services/requests`; the latest answer counts.
    func on(_ start: String, _ answer: @escaping @Sendable ([UInt8]) async -> Answer?) {
        state.withLock { $0.answers.insert((start, answer), at: 0) }
    }

    func on(_ start: String, _ status: Int, _ body: String = "") { on(start) { _ in (status, body) } }

    /// Refuses all requests with a prefix.
    func refuse(_ start: String, _ code: ErrorCode) throws {
        let body = try JSONEncoder().encode(ProblemDocument(Refusal(code, "why")))
        on(start, code.status, String(decoding: body, as: UTF8.self))
    }

    /// Answers all transfers with a method.
    func onFile(_ method: String, _ answer: @escaping @Sendable (FileRequest) async throws -> WebAnswer) {
        state.withLock { $0.files[method] = answer }
    }

    /// The method and path of each request and transfer, in order.
    var asked: [String] { state.withLock { $0.asked.map(\.path) } }

    /// The bodies of the requests with a prefix.
    func bodies(_ start: String) -> [[UInt8]] {
        state.withLock { state in state.asked.filter { $0.path.hasPrefix(start) }.map(\.body) }
    }

    /// Accepts uploads completely, each as an attachment with a number.
    ///
    /// - Parameter start: The beginning of the ids of attachments. An id that a manifest can have has 36 hexadecimal digits.
    func takeUploads(named start: String = "") {
        let count = Mutex(0)
        onFile("POST") { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return WebAnswer(status: 201, headers: ["location": "/v1/attachments/\(start)\(number)", "upload-offset": "0"])
        }
        onFile("PATCH") { [weak self] request in
            let id = request.address.text.split(separator: "/").last ?? ""
            if let (file, range) = request.body {
                let bytes = try file.read(at: range.lowerBound, count: range.count)
                self?.state.withLock { $0.attachments[String(id)] = bytes }
            }
            let body = #"{"id":"\#(id)","expiresAt":"2099-01-31T12:00:00.000Z"}"#
            return WebAnswer(status: 200, headers: [:], body: Data(body.utf8))
        }
        onFile("DELETE") { _ in WebAnswer(status: 204, headers: ["carillon-server": Self.server]) }
    }

    /// Serves the attachments that another server received.
    func giveFiles(of other: ScriptedWeb) {
        let attachments = other.state.withLock { $0.attachments }
        state.withLock { $0.attachments.merge(attachments) { $1 } }
    }

    func withConnection(
        to address: WebAddress, _ body: (WebSocketConnection) async -> Void
    ) async throws(TransportFault) { throw TransportFault(.unreachable, nil) }

    func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
        let path = "\(request.method.rawValue) \(request.address.text.dropFirst(Self.base.count))"
        let body = request.json.map { Array($0) } ?? []
        let found = state.withLock { state in
            state.asked.append((path, body))
            return state.answers.first { path.hasPrefix($0.start) }?.answer
        }
        guard let answer = await found?(body) else { throw TransportFault(.unreachable, nil) }
        return WebAnswer(
            status: answer.status, retryAfter: retryAfter.withLock { $0 }, body: Data(answer.body.utf8),
            contentType: answer.status < 400 ? "application/json" : "application/problem+json", server: Self.server)
    }

    func exchange(
        _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
        received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
    ) async throws -> WebAnswer {
        let path = "\(request.method) \(request.address.text.dropFirst(Self.base.count))"
        let answer = state.withLock { state in
            state.asked.append((path, []))
            return state.files[request.method]
        }
        let id = request.address.text.split(separator: "/").last.map { String($0) } ?? ""
        if answer == nil, request.method == "GET", let bytes = state.withLock({ $0.attachments[id] }) {
            let range = "bytes 0-\(bytes.count - 1)/\(bytes.count)"
            let whole = WebAnswer(status: 206, headers: ["content-range": range])
            try await received(whole, bytes)
            return whole
        }
        guard let answer else { throw TransportFault(.unreachable, nil) }
        if let range = request.body?.range {
            sent(range.upperBound / 2)
            sent(range.upperBound)
        }
        return try await answer(request)
    }
}
