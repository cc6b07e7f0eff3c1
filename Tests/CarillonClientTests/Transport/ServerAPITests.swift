import CarillonWire
import Foundation
import Testing

@testable import CarillonClient

/// The result of each kind of answer to a request of the HTTP API.
@Suite(.timeLimit(.minutes(5)))
struct ServerAPITests {
    /// Returns one answer to each request; without an answer, the connection is cut.
    private struct Answering: WebTransport {
        var answer: WebAnswer?

        func send(_ request: WebRequest) async throws(TransportFault) -> WebAnswer {
            guard let answer else { throw TransportFault(.reachedServer, nil) }
            return answer
        }
    }

    private static let success = #"{"server":"s","socket":"ws://host/","endpoints":"http://host/push/"}"#

    private static func problem(_ status: Int, _ code: String) -> String {
        #"{"type":"t","title":"t","status":\#(status),"detail":"d","code":"\#(code)"}"#
    }

    /// Returns an answer of the server.
    private static func answer(_ status: Int, _ body: String, retryAfter: String? = nil) -> WebAnswer {
        WebAnswer(
            status: status, retryAfter: retryAfter, body: Data(body.utf8),
            contentType: status < 400 ? "application/json" : ProblemDocument.mediaType, server: "s")
    }

    /// Returns the result of a request, and of the same request as one that is repeated.
    private func results(_ answer: WebAnswer?, repeats: Bool = false) async throws -> (answer: String, outcome: String) {
        let api = ServerAPI(
            "http://host/", over: Answering(answer: answer), backOff: .init(initial: .seconds(1), maximum: .seconds(60))
        ) { credential in repeats && credential == "c" }
        let request = try #require(api.request(.get, "/v1/server", bearer: "c"))
        let form = SuccessForm.json(200, as: ServerBody.self)
        let first =
            switch await api.send(request, expecting: form) {
            case .success: "success"
            case .refused(let refusal, let wait): "refused \(refusal.status) \(text(wait))"
            case .foreign(_, let wait): "foreign \(text(wait))"
            case .unreachable: "unreachable"
            }
        let second =
            switch await api.attempt(request, expecting: form) {
            case .success: "success"
            case .refused(let refusal): "refused \(refusal.status)"
            case .later(let hint): "later \(text(hint))"
            }
        return (first, second)
    }

    private func text(_ wait: Duration?) -> String { wait.map { "\($0.components.seconds)" } ?? "-" }

    @Test(
        arguments: [
            (nil, "-"), ("7", "7"), ("0", "0"), ("4.2", "5"), ("-5", "-"), ("86400", "86400"), ("3601", "3601"),
            ("99999999999999999999", "86400"), ("soon", "-"), ("", "-"), ("7 seconds", "-"),
            ("Fri, 31 Jan 2020 23:59:59 GMT", "0"), ("Fri, 31 Dec 9999 23:59:59 GMT", "86400"),
        ] as [(String?, String)], [(429, "rate_limited"), (503, "overloaded")])
    func `a refusal for now carries the wait of Retry-After up to a day`(
        _ header: (value: String?, wait: String), _ refusal: (status: Int, code: String)
    ) async throws {
        let answer = Self.answer(
            refusal.status, Self.problem(refusal.status, refusal.code), retryAfter: header.value)
        let results = try await results(answer)
        #expect(results.answer == "refused \(refusal.status) \(header.wait)")
        #expect(results.outcome == "later \(header.wait)")
        var page = answer
        page.headers = page.headers.filter { $0.key == "retry-after" }
        let foreign = try await self.results(page)
        let wait = Int(header.wait).map { "\(min($0, 60))" } ?? "-"
        #expect(foreign.answer == "foreign \(wait)")
        #expect(foreign.outcome == "later \(wait)")
    }

    @Test(
        arguments: [
            (200, success, "success", "success"), (200, "{}", "foreign -", "later -"),
            (200, "", "foreign -", "later -"), (200, String(success.dropLast(9)), "foreign -", "later -"),
            (204, "", "foreign -", "later -"), (302, "", "foreign -", "later -"),
            (401, problem(401, "credential_invalid"), "refused 401 -", "refused 401"),
            (403, problem(403, "forbidden"), "refused 403 -", "refused 403"),
            (404, problem(404, "not_found"), "refused 404 -", "refused 404"),
            (410, problem(410, "of_a_later_version"), "refused 410 -", "refused 410"),
            (408, problem(408, "of_a_later_version"), "refused 408 -", "later -"),
            (500, problem(500, "internal"), "refused 500 -", "later -"),
            (502, "<html>", "foreign -", "later -"), (404, "<html>", "foreign -", "later -"),
            (503, String(problem(503, "overloaded").dropLast()), "foreign -", "later -"),
        ] as [(Int, String, String, String)])
    func `an answer is a success, a refusal or another program's`(
        _ status: Int, _ body: String, _ answer: String, _ outcome: String
    ) async throws {
        let results = try await results(Self.answer(status, body))
        #expect(results.answer == answer)
        #expect(results.outcome == outcome)
    }

    @Test func `a cut answer is none, and the request can be sent again`() async throws {
        #expect(try await results(nil) == ("unreachable", "later -"))
    }

    @Test func `the transport drops a body that is too long, and the answer is another program's`() async throws {
        let long = String(repeating: " ", count: Limits.apiBodyBytes) + Self.success
        for (status, result) in [(200, "foreign -"), (503, "foreign 7")] {
            let head =
                "HTTP/1.1 \(status) Any\r\nContent-Type: application/json\r\nCarillon-Server: s\r\nRetry-After: 7\r\n"
                + "Content-Length: \(long.utf8.count)\r\n\r\n\(long)"
            try await TransportConformanceTests().withListener(saying: head) { port in
                let transport = try TransportConformanceTests.Kind.posix.transport()
                let api = ServerAPI("http://127.0.0.1:\(port)", over: transport)
                let request = try #require(api.request(.get, "/v1/server", bearer: nil))
                let answer = await api.send(request, expecting: .json(200, as: ServerBody.self))
                guard case .foreign(_, let wait) = answer else {
                    Issue.record("\(status) is an answer of the server")
                    return
                }
                #expect("foreign \(text(wait))" == result)
            }
        }
    }

    @Test func `a refused credential is sent again if the registration is repeated`() async throws {
        let answer = Self.answer(401, Self.problem(401, "credential_invalid"), retryAfter: "9")
        #expect(try await results(answer, repeats: true) == ("refused 401 9", "later 9"))
        #expect(try await results(Self.answer(403, Self.problem(403, "forbidden")), repeats: true).outcome == "refused 403")
    }

    @Test func `an address and a path make a URL, or there is no request`() {
        let api = ServerAPI("http://host/base/", over: Answering())
        #expect(api.request(.get, "/v1/server", bearer: nil)?.address.text == "http://host/base/v1/server")
        #expect(api.request(.get, "/v1/a b", bearer: nil) == nil)
        #expect(api.at("http://other/").base == "http://other")
    }
}
