import ArgumentParser
import CarillonAPNs
import Testing

@testable import CarillonCommand

struct SendSummaryTests {
    private func rejected(_ status: Int, _ reason: APNsReason) -> Result<APNsResponse, APNsError> {
        .success(APNsResponse(outcome: .rejected(APNsRejection(status: status, reason: reason)), status: status))
    }

    private let accepted = Result<APNsResponse, APNsError>.success(APNsResponse(outcome: .accepted, status: 200))

    private func failed(_ code: APNsError.Code, mayHaveBeenProcessed: Bool = false) -> Result<APNsResponse, APNsError> {
        .failure(APNsError(code, "The reason.", mayHaveBeenProcessed: mayHaveBeenProcessed))
    }

    @Test func `outcomes are counted by reason, the most frequent first, with advice`() {
        var tally = SendTally()
        for _ in 0..<9120 { tally.add(accepted) }
        for _ in 0..<2 { tally.add(rejected(410, .unregistered)) }
        for _ in 0..<12 { tally.add(rejected(400, .badDeviceToken)) }
        for line in [7, 9, 30, 31] { tally.add(failed(.tokenInvalid), line: line) }
        tally.add(failed(.connectionLost, mayHaveBeenProcessed: true), line: 40)
        let lines = SendSummary(tally: tally, duration: .milliseconds(2000), end: .done).lines
        #expect(lines[0] == "accepted      9,120")
        #expect(lines[1] == "refused          14")
        #expect(lines[2].hasPrefix("                 12  BadDeviceToken: "))
        #expect(lines[3].hasPrefix("                  2  Unregistered: "))
        #expect(lines[4] == "failed            5")
        #expect(lines[5].hasSuffix("(lines 7, 9, 30 and others)"))
        #expect(lines[6] == "                  1  connectionLost: the reason (line 40); 1 may have arrived")
        #expect(lines[7] == "in 2.0 s, 4,569 a second")
        #expect(lines.count == 8)
    }

    @Test func `the number of omitted repetitions is reported`() {
        var tally = SendTally()
        tally.add(accepted)
        var summary = SendSummary(tally: tally, duration: .seconds(1), end: .done)
        #expect(!summary.lines.contains { $0.hasPrefix("repeated") })
        #expect(!summary.values.keys.contains("repeated"))
        summary.repeated = 0
        #expect(!summary.lines.contains { $0.hasPrefix("repeated") })
        #expect(summary.values.keys.contains("repeated"))
        summary.repeated = 1200
        #expect(summary.lines.contains("repeated      1,200, each with one push"))
    }

    struct Case: Sendable {
        var results: [Result<APNsResponse, APNsError>]
        var code: Int32
    }

    @Test func `the exit code is that of the most important failure`() {
        let cases = [
            Case(results: [], code: 0), Case(results: [accepted], code: 0),
            Case(results: [accepted, rejected(410, .unregistered)], code: 65),
            Case(results: [failed(.tokenInvalid), accepted], code: 65),
            Case(results: [rejected(410, .unregistered), rejected(429, .tooManyRequests)], code: 75),
            Case(results: [rejected(503, .serviceUnavailable), failed(.timedOut)], code: 69),
            Case(results: [failed(.timedOut), rejected(403, .invalidProviderToken), accepted], code: 77),
            Case(results: [failed(.cancelled)], code: 1),
        ]
        for one in cases {
            var tally = SendTally()
            for result in one.results { tally.add(result) }
            #expect(tally.exitStatus.rawValue == one.code)
        }
    }

    @Test func `a service in trouble counts as one that does not answer`() {
        var tally = SendTally()
        for _ in 0..<3 { tally.add(rejected(503, .serviceUnavailable)) }
        #expect(tally.unanswered == 3)
        #expect(APNsRejection(status: 429, reason: .tooManyProviderTokenUpdates).concernsAll)
    }

    @Test func `the number of unknown reasons is limited, and they cannot control a terminal`() {
        var tally = SendTally()
        for number in 0..<1000 { tally.add(rejected(400, APNsReason(rawValue: "\u{1B}[31m\(number)"))) }
        #expect(tally.refusals.count == 101)
        #expect(!tally.refusals.keys.contains { $0.contains("\u{1B}") })
        #expect("a\u{1B}[2J\nb\r\u{7}".escapedForTerminal() == #"a\u001b[2J\nb\r\u0007"#)
    }

    @Test func `an answer of the service makes up for ten that are missing`() {
        var tally = SendTally()
        for code in [APNsError.Code.timedOut, .connectionLost, .connectionFailed, .notSent] { tally.add(failed(code)) }
        for code in [APNsError.Code.tokenInvalid, .cancelled] { tally.add(failed(code)) }
        #expect(tally.unanswered == 4)
        tally.add(rejected(400, .badDeviceToken))
        #expect(tally.unanswered == 0)
        for _ in 0..<25 { tally.add(failed(.timedOut)) }
        tally.add(accepted)
        #expect(tally.unanswered == 15)
        tally.add(rejected(503, .serviceUnavailable))
        #expect(tally.unanswered == 16)
    }

    @Test func `a fault of one token does not concern the others`() {
        for reason in [APNsReason.badDeviceToken, .unregistered, .expiredToken, .deviceTokenNotForTopic, .tooManyRequests] {
            #expect(!APNsRejection(status: 400, reason: reason).concernsAll)
        }
        for reason in [APNsReason.badTopic, .payloadTooLarge, .invalidProviderToken, .topicDisallowed] {
            #expect(APNsRejection(status: 400, reason: reason).concernsAll)
        }
    }

    @Test(arguments: [(0, "0"), (999, "999"), (1000, "1,000"), (-1234, "-1,234"), (12_345_678, "12,345,678")])
    func `numbers are grouped`(number: Int, text: String) {
        #expect(number.grouped == text)
    }
}
