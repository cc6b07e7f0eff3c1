import CarillonWire
import Foundation
import Logging
import Testing

@testable import CarillonClient

/// How long a transfer waits before it repeats its request.
@Suite(.timeLimit(.minutes(5)))
struct TransferWaitTests {
    private struct Refusing: FileTransport {
        var status = 503
        var headers: [String: String]
        var body = Data()

        func exchange(
            _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
            received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
        ) async throws -> WebAnswer {
            WebAnswer(status: status, headers: headers, body: body)
        }
    }

    private func server(_ transport: Refusing, _ backOff: PushClient.BackOff = .init()) -> TransferAPI {
        TransferAPI(base: "http://host", transport: transport, backOff: backOff, logger: Logger(label: "test")) { "key" }
    }

    @Test(
        arguments: [
            ("7", .seconds(7)), ("4.2", .seconds(5)), ("Fri, 31 Dec 9999 23:59:59 GMT", .seconds(86_400)), ("soon", nil),
            ("0", .zero), ("Fri, 31 Jan 2020 23:59:59 GMT", .zero),
        ] as [(String, Duration?)])
    func `the wait in a refusal is respected`(_ value: String, _ wait: Duration?) async throws {
        let problem = try JSONEncoder().encode(ProblemDocument(Refusal(.overloaded, "why")))
        // Another program can ask for the longest wait of the back-off.
        for (refusing, wait) in [
            (Refusing(headers: ["retry-after": value, "content-type": ProblemDocument.mediaType], body: problem), wait),
            (Refusing(headers: ["retry-after": value]), wait.map { min($0, .seconds(60)) }),
        ] {
            let outcome = try await server(refusing).send(
                "GET", "/v1/attachments/x", expecting: .content { (_: WebAnswer) -> Bool? in nil })
            guard case .later(let hint) = outcome else {
                Issue.record("it was not to be asked again")
                return
            }
            #expect(hint == wait)
        }
    }

    @Test(arguments: RelayAnswer.allCases)
    func `another program can set a wait with 429 or 503 only`(relay: RelayAnswer) async throws {
        for (status, wait) in [(relay.status, nil), (429, .seconds(60)), (503, .seconds(60))] as [(Int, Duration?)] {
            let answer = relay.file(isHead: false)
            let refusing = Refusing(status: status, headers: answer.headers, body: answer.body)
            let outcome = try await server(refusing).send(
                "GET", "/v1/attachments/x", expecting: .content { (_: WebAnswer) -> Bool? in nil })
            guard case .later(let hint) = outcome else {
                Issue.record("the response \(status) ended the transfer")
                continue
            }
            #expect(hint == wait, "\(status)")
        }
    }

    @Test func `a step is repeated after the requested wait`() async throws {
        let server = server(Refusing(headers: [:]), .init(initial: .milliseconds(1), maximum: .milliseconds(1)))
        let began = ContinuousClock.now
        var steps = 0
        try await server.persist { () async throws -> TransferAPI.Step<Void> in
            steps += 1
            return steps == 1 ? .later(hint: .milliseconds(400), hasMoved: false) : .done(())
        }
        #expect(ContinuousClock.now - began >= .milliseconds(400))
    }

    @Test(arguments: [nil, .zero] as [Duration?])
    func `each wait is longer than the one before`(hint: Duration?) async throws {
        let backOff = PushClient.BackOff(initial: .milliseconds(20), maximum: .seconds(60), jitter: 0)
        let server = server(Refusing(headers: [:]), backOff)
        let began = ContinuousClock.now
        var steps = 0
        try await server.persist { () async throws -> TransferAPI.Step<Void> in
            steps += 1
            return steps <= 6 ? .later(hint: hint, hasMoved: false) : .done(())
        }
        // 20 + 40 + 80 + 160 + 320 + 640 milliseconds.
        #expect(ContinuousClock.now - began >= .milliseconds(1260))
    }
}
