import Testing

@testable import CarillonClient

/// Which failures to connect are reported.
struct ConnectionReportsTests {
    private var reports = ConnectionReports()
    private let refused = PushError(.serverUnreachable, "Connection refused.")
    private let unnamed = PushError(.serverUnreachable, "Name not found.")

    /// Notes a failure, and returns the reason that is reported.
    private func reported(
        _ error: PushError, by route: ConnectionReports.Route = .socket, at place: String = "a:1",
        _ reports: inout ConnectionReports
    ) -> String? {
        reports.failed(at: place, "ws://\(place)/", by: route, error)
        return reports.willRetry(at: place)?.summary
    }

    @Test func `the first failure and each other reason are reported, and repetitions are not`() {
        var reports = reports
        #expect(reported(refused, &reports) == "connection refused")
        #expect(reported(refused, &reports) == nil)
        #expect(reported(unnamed, &reports) == "name not found")
        #expect(reported(unnamed, &reports) == nil)
        #expect(reported(refused, &reports) == "connection refused")
        #expect(reported(refused, at: "b:1", &reports) == "connection refused", "another host is another failure")
    }

    @Test func `a host that fails over HTTP and as a socket is reported once for each reason`() {
        var reports = reports
        #expect(reported(refused, by: .socket, &reports) != nil)
        #expect(reported(refused, by: .http, &reports) == nil)
        #expect(reported(unnamed, by: .http, &reports) != nil)
        for _ in 0..<3 {
            #expect(reported(refused, by: .socket, &reports) == nil)
            #expect(reported(unnamed, by: .http, &reports) == nil)
        }
    }

    @Test func `an answer over HTTP does not make the failure of a socket the first again`() {
        var reports = reports
        #expect(reported(refused, by: .socket, &reports) != nil)
        for _ in 0..<3 {
            #expect({ !reports.answered(at: "a:1") }())
            #expect(reported(refused, by: .socket, &reports) == nil)
            #expect(reports.present?.message == refused.message)
        }
        #expect(reported(unnamed, by: .http, &reports) != nil)
        #expect(reports.present?.message == unnamed.message)
        #expect({ reports.answered(at: "a:1") }())
        #expect(reports.present == nil)
        #expect(reported(unnamed, by: .http, &reports) != nil)
    }

    @Test func `after a connection the next failure is the first again`() {
        var reports = reports
        #expect({ !reports.connected() }())
        #expect(reported(refused, &reports) != nil)
        #expect({ reports.connected() }())
        #expect(reports.present == nil && reports.liveCount == 2)
        #expect(reported(refused, &reports) != nil)
    }

    @Test func `a failure that is not reported yet is forgotten with its success`() {
        var reports = reports
        reports.failed(at: "a:1", "http://a:1", by: .http, refused)
        #expect({ reports.answered(at: "a:1") }())
        #expect({ reports.willRetry(at: "a:1") == nil }())
        reports.failed(at: "a:1", "http://a:1", by: .http, refused)
        #expect({ reports.connected() }())
        #expect({ reports.willRetry(at: "a:1") == nil }())
    }

    @Test func `the number of hosts that are remembered has a bound`() {
        var reports = reports
        for number in 0..<ConnectionReports.mostHosts {
            #expect(reported(refused, at: "host-\(number):1", &reports) != nil)
        }
        #expect(reported(refused, at: "host-0:1", &reports) == nil)
        #expect(reported(refused, at: "another:1", &reports) != nil)
        #expect(reported(refused, at: "host-0:1", &reports) != nil, "all were forgotten")
    }

    @Test func `a report has the address, the reason and the advice`() {
        var reports = reports
        let failure = ConnectionFailure(TransportFault(.timeOut, nil), at: "ws://a:1/")
        reports.failed(at: "a:1", "ws://a:1/", by: .socket, failure.error())
        let report = reports.willRetry(at: "a:1")
        #expect(report?.address == "ws://a:1/" && report?.summary == "no answer in time" && report?.advice != nil)
    }

    @Test(arguments: [
        ("The server is full.", "the server is full"), ("TLS failed.", "TLS failed"), ("No", "no"), ("", ""), ("A", "A"),
    ])
    func `a sentence becomes a clause`(_ sentence: String, _ clause: String) {
        #expect(ConnectionReports.Report.clause(of: sentence) == clause)
    }
}
