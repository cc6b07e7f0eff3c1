import CarillonCore
import CarillonWire
import Testing

@Suite(.timeLimit(.minutes(5)))
struct UnacceptedAlertsTests {
    private let now = Timestamp(milliseconds: 1_700_000_000_000)

    private func alerts(_ serials: ClosedRange<Int64>) -> [UnacceptedAlerts.Alert] {
        serials.map { UnacceptedAlerts.Alert(serial: $0) }
    }

    @Test func `the newest twenty are sent, the oldest of them first, one a second`() {
        let decision = UnacceptedAlerts(alerts(1...25), at: now)
        #expect(decision.folded == [1, 2, 3, 4, 5])
        #expect(decision.sent.map(\.serial) == Array(6...25))
        #expect(decision.sent.map(\.dueAt) == (0..<20).map { now.adding(seconds: $0) })
        #expect(UnacceptedAlerts(alerts(1...20), at: now).folded.isEmpty)
        #expect(UnacceptedAlerts([], at: now).sent.isEmpty)
    }

    @Test func `an alert that was to be sent later is not sent earlier`() {
        let later = UnacceptedAlerts.Alert(serial: 2, dueAt: now.adding(seconds: 10))
        let earlier = UnacceptedAlerts.Alert(serial: 3, dueAt: now.adding(seconds: -10))
        let decision = UnacceptedAlerts([.init(serial: 1), later, earlier], at: now)
        #expect(decision.sent.map(\.dueAt) == [0, 10, 2].map { now.adding(seconds: $0) })
    }
}
