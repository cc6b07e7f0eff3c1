import Testing

@testable import CarillonClient

struct PushDeviceMachineTests {
    private func machine(_ status: PushDeviceStatus, token: String? = "aa", taken: String? = "aa") -> PushDeviceMachine {
        PushDeviceMachine(
            token: token, acceptedToken: taken, details: PushDeviceDetails(), status: status,
            statusAt: status == .unknown ? nil : 100)
    }

    private let suspended = PushDeviceStatus.suspended(.tokenDead)
    private let refusal = PushError(.registrationRefused, "no")

    @Test func `a token is reported once in each run, and again when it changes`() throws {
        var machine = PushDeviceMachine()
        #expect(machine.report == nil)
        let isOther = machine.tokenSet("aa")
        #expect(isOther)
        let report = try #require(machine.report)
        #expect(report == .init(token: "aa", previousToken: nil, details: PushDeviceDetails()))
        let events = machine.tokenAccepted(report, .registered, at: 5)
        #expect(events == [.statusChanged(.registered), .registered])
        #expect(machine.report == nil && machine.acceptedToken == "aa" && machine.statusAt == 5)
        let isSame = machine.tokenSet("aa")
        #expect(!isSame && machine.report == nil)
        _ = machine.tokenSet("bb")
        #expect(machine.report == .init(token: "bb", previousToken: "aa", details: PushDeviceDetails()))
        #expect(machine.acceptedToken == "aa", "until the server took the new one")
        var next = self.machine(.registered)
        #expect(next.report == .init(token: "aa", previousToken: nil, details: PushDeviceDetails()))
        let again = next.tokenAccepted(try #require(next.report), .registered, at: 9)
        #expect(again == [.registered], "it may be told again")
    }

    @Test func `another run of the client reports the token again, and so does an app with a suspended device`() throws {
        var machine = machine(.registered)
        _ = machine.tokenAccepted(try #require(machine.report), .registered, at: 100)
        #expect(machine.report == nil)
        machine.started()
        #expect(machine.report?.token == "aa")
        _ = machine.tokenAccepted(try #require(machine.report), .registered, at: 100)
        _ = machine.statusReported(suspended, at: 200)
        #expect(machine.report == nil, "a server that suspends is not contradicted at once")
        let isOther = machine.tokenSet("aa")
        #expect(!isOther && machine.report?.token == "aa")
    }

    @Test func `a token that the server does not have any more is reported again`() throws {
        func taken() throws -> PushDeviceMachine {
            var machine = machine(.registered)
            var report = try #require(machine.report)
            report.revision = "r"
            _ = machine.tokenAccepted(report, .registered, at: 100)
            return machine
        }
        for (revision, isRestored, isLost) in [
            ("r", false, false), ("q", false, true), (nil, false, true), ("r", true, true),
        ]
            as [(String?, Bool, Bool)]
        {
            var machine = try taken()
            let answer = machine.serverHas(revision, isRestored: isRestored)
            #expect(answer == isLost && (machine.report != nil) == isLost, "\(revision ?? "nil") \(isRestored)")
            #expect(machine.status == .registered)
            let again = machine.serverHas("other", isRestored: false)
            #expect(again == !isLost, "a pending report is not lost")
        }
        var fresh = machine(.registered)
        let early = fresh.serverHas("r", isRestored: true)
        #expect(!early, "this run has not sent a report yet")
        let report = try #require(fresh.report)
        var details = PushDeviceDetails()
        details.locale = "de"
        #expect(report.name != PushDeviceMachine.Report(token: "ab", details: PushDeviceDetails()).name)
        #expect(report.name != PushDeviceMachine.Report(token: "aa", details: details).name)
        #expect(report.name == PushDeviceMachine.Report(token: "aa", previousToken: "x", details: PushDeviceDetails()).name)
    }

    @Test func `an answer that a server's message overtook reports only that the token was accepted`() throws {
        var machine = machine(.registered)
        _ = machine.tokenSet("bb")
        let report = try #require(machine.report)
        _ = machine.statusReported(suspended, at: 200)
        let events = machine.tokenAccepted(report, .registered, at: 150)
        #expect(events.isEmpty && machine.status == suspended && machine.acceptedToken == "bb" && machine.report == nil)
        // The next is newer at any time: the server may have been restored.
        machine.started()
        let later = machine.tokenAccepted(try #require(machine.report), .registered, at: 150)
        #expect(later.last == .registered && machine.status == .registered)
    }

    @Test func `a token that arrives during a report is reported after it`() throws {
        var machine = PushDeviceMachine()
        _ = machine.tokenSet("aa")
        let report = try #require(machine.report)
        _ = machine.tokenSet("bb")
        _ = machine.tokenAccepted(report, .registered, at: 1)
        #expect(machine.report?.token == "bb" && machine.report?.previousToken == "aa")
        _ = machine.tokenAccepted(try #require(machine.report), .registered, at: 2)
        let isOther = machine.detailsSet(PushDeviceDetails(locale: "de"))
        #expect(isOther && machine.report?.details.locale == "de")
    }

    @Test func `an answer of suspended is reported as such`() throws {
        var machine = PushDeviceMachine()
        _ = machine.tokenSet("aa")
        let events = machine.tokenAccepted(try #require(machine.report), .suspended(.byOperator), at: 1)
        #expect(events == [.statusChanged(.suspended(.byOperator)), .suspended(.byOperator)])
    }

    @Test func `a registration ends a suspension, and reports that first`() throws {
        var machine = machine(suspended)
        let events = machine.tokenAccepted(try #require(machine.report), .registered, at: 200)
        #expect(events == [.statusChanged(.registered), .resumed, .registered])
    }

    @Test(arguments: [PushDeviceStatus.registered, .suspended(.tokenDead), .unknown])
    func `a refusal is reported before the status becomes unknown, and is not repeated automatically`(
        _ status: PushDeviceStatus
    ) throws {
        var machine = machine(status)
        let events = machine.tokenRefused(try #require(machine.report), refusal)
        #expect(events == [.registrationFailed(refusal)] + (status == .unknown ? [] : [.statusChanged(.unknown)]))
        #expect(machine.status == .unknown && machine.statusAt == nil && machine.report == nil)
        _ = machine.tokenSet("aa")
        #expect(machine.report != nil, "a repeated call causes another report")
    }

    @Test func `a refusal of an earlier report does not concern the current one`() throws {
        var machine = machine(.registered)
        let report = try #require(machine.report)
        _ = machine.tokenSet("bb")
        let events = machine.tokenRefused(report, refusal)
        #expect(events.isEmpty && machine.status == .registered && machine.report?.token == "bb")
    }

    @Test func `the server suspends and resumes, and outdated events change nothing`() {
        var machine = machine(.registered)
        let first = machine.statusReported(suspended, at: 200)
        #expect(first == [.statusChanged(suspended), .suspended(.tokenDead)])
        let old = machine.statusReported(.registered, at: 150)
        #expect(old.isEmpty && machine.status == suspended)
        let again = machine.statusReported(suspended, at: 200)
        #expect(again.isEmpty)
        let resumed = machine.statusReported(.registered, at: 300)
        #expect(resumed == [.statusChanged(.registered), .resumed] && machine.statusAt == 300)
    }

    @Test func `while the status is unknown only an answer to a report is believed`() {
        var machine = machine(.unknown)
        let events = machine.statusReported(.registered, at: 900)
        #expect(events.isEmpty && machine.status == .unknown)
    }

    @Test(arguments: [PushDeviceStatus.registered, .suspended(.tokenTaken), .unknown])
    func `a lost device is unknown, and its token is reported again`(_ status: PushDeviceStatus) {
        var machine = machine(status)
        let events = machine.deviceLost()
        #expect(events == (status == .unknown ? [] : [.statusChanged(.unknown)]))
        #expect(machine.acceptedToken == nil && machine.report?.token == "aa" && machine.report?.previousToken == nil)
    }
}
