import CarillonCore
import Testing

struct CompletionMachineTests {
    private let now = Timestamp(milliseconds: 1_000_000)
    private var machine = CompletionMachine()

    /// The macro does not support mutating calls.
    private func expect(_ wanted: Bool, _ answer: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(answer == wanted, sourceLocation: sourceLocation)
    }

    private mutating func fail(times: Int, at now: Timestamp? = nil) {
        for _ in 0..<times {
            machine.offered()
            machine.received(at: now ?? self.now)
            expect(true, machine.reported(.failed(isPermanent: false, reason: "why"), at: now ?? self.now))
        }
    }

    @Test mutating func `a received update is delivered again after a day without a report`() {
        machine.offered()
        #expect(machine.isInInbox)
        machine.received(at: now)
        #expect(machine.state == .stored && machine.dueAt == now.adding(seconds: 86_400))
        machine.offered()
        #expect(machine.state == .waiting && machine.attempt == 2 && machine.dueAt == nil)
    }

    @Test
    mutating func `a failed update is delivered again at once, then after 30 seconds, doubled up to six hours`() {
        var delays: [Int64] = []
        for _ in 0..<9 {
            fail(times: 1)
            #expect(machine.state == .failed)
            delays.append(((machine.dueAt?.milliseconds ?? 0) - now.milliseconds) / 1000)
        }
        #expect(delays == [0, 30, 60, 120, 240, 480, 960, 1920, 3840])
        #expect(machine.reason == "why")
    }

    @Test mutating func `the tenth failure parks`() {
        fail(times: 9)
        #expect(machine.state == .failed)
        fail(times: 1)
        #expect(machine.state == .parked && machine.dueAt == nil && machine.failures == 10)
    }

    @Test mutating func `seven days of failing park`() {
        fail(times: 1)
        fail(times: 1, at: now.adding(seconds: 7 * 86_400 - 1))
        #expect(machine.state == .failed)
        fail(times: 1, at: now.adding(seconds: 7 * 86_400))
        #expect(machine.state == .parked)
    }

    @Test mutating func `the longest delay is six hours`() {
        for failures in 1...9 { #expect(CompletionMachine.delay(failures) <= 6 * 3600) }
        #expect(CompletionMachine.delay(40) == 6 * 3600)
    }

    @Test mutating func `a permanent failure parks at once`() {
        machine.offered()
        expect(true, machine.reported(.failed(isPermanent: true, reason: nil), at: now))
        #expect(machine.state == .parked)
    }

    @Test mutating func `a deferral never counts as a failure`() {
        for _ in 0..<50 {
            machine.offered()
            machine.received(at: now)
            expect(true, machine.reported(.deferred(seconds: 60, reason: "dirty"), at: now))
        }
        #expect(machine.state == .deferred && machine.failures == 0 && machine.dueAt == now.adding(seconds: 60))
        expect(true, machine.reported(.deferred(seconds: nil, reason: nil), at: now))
        #expect(machine.dueAt == now.adding(seconds: 86_400))
    }

    @Test mutating func `the delay of a deferral has bounds`() {
        machine.offered()
        expect(true, machine.reported(.deferred(seconds: 0, reason: nil), at: now))
        #expect(machine.dueAt == now.adding(seconds: 1))
        expect(true, machine.reported(.deferred(seconds: .max, reason: nil), at: now))
        #expect(machine.dueAt == now.adding(seconds: CompletionMachine.mostDelaySeconds))
    }

    @Test mutating func `a parked update stays parked until it is requeued, or the device is done with it`() {
        machine.offered()
        expect(true, machine.reported(.failed(isPermanent: true, reason: nil), at: now))
        expect(false, machine.reported(.failed(isPermanent: false, reason: nil), at: now))
        expect(false, machine.reported(.deferred(seconds: 1, reason: nil), at: now))
        machine.due(at: now)
        #expect(machine.state == .parked && machine.dueAt == nil)
        var other = machine
        expect(true, other.reported(.done, at: now))
        #expect(other.state == .done)
        expect(true, machine.requeued(at: now))
        #expect(machine.state == .failed && machine.failures == 0 && machine.firstFailedAt == nil && machine.dueAt == now)
        expect(false, machine.requeued(at: now))
    }

    @Test(arguments: CompletionMachine.State.allCases.filter(\.isFinal))
    func `a final state stays final`(state: CompletionMachine.State) {
        var machine = CompletionMachine(state, attempt: 1)
        for result in [
            UpdateResult.done, .deferred(seconds: 1, reason: nil), .failed(isPermanent: false, reason: nil), .unsupported,
        ] {
            expect(false, machine.reported(result, at: now))
        }
        expect(false, machine.ended(as: .withdrawn))
        expect(false, machine.requeued(at: now))
        machine.received(at: now)
        #expect(machine.state == state)
        machine.due(at: now)
        // Its kinds may change.
        #expect(machine.state == (state == .unsupported ? .waiting : state))
    }

    @Test mutating func `an update that was never delivered is not reported`() {
        expect(false, machine.reported(.done, at: now))
        #expect(machine.state == .waiting)
    }

    @Test mutating func `an update that waits for another one is due when it is released`() {
        #expect(!machine.isInInbox && machine.blocksOthers)
        machine.released(at: now)
        #expect(machine.dueAt == now)
        machine.offered()
        machine.released(at: now)
        #expect(machine.dueAt == nil && machine.isInInbox)
    }

    @Test
    mutating func `an update that was offered twice and never received is forgotten when the device leaves the audience`() {
        for _ in 1...2 {
            machine.offered()
            machine.takenOut(at: now)
        }
        #expect(machine.attempt == 2 && machine.isUnreceived)
        expect(true, machine.leftAudience(at: now))
    }

    @Test mutating func `a device that left can complete a received update, and a repeated delivery ends`() {
        machine.offered()
        machine.received(at: now)
        #expect(machine.isReceived && !machine.isUnreceived)
        var stored = machine
        expect(false, stored.leftAudience(at: now))
        #expect(stored == machine)
        expect(false, stored.leftAudience(at: now.adding(seconds: CompletionMachine.silenceSeconds)))
        #expect(stored.state == .gone && stored.dueAt == nil)
        machine.offered()
        expect(false, machine.leftAudience(at: now))
        #expect(machine.state == .gone)
        machine.returned(at: now)
        #expect(machine.state == .waiting && machine.attempt == 2 && machine.dueAt == now && machine.isReceived)
    }

    @Test func `every result except an unknown kind proves that the device received the update`() {
        for (result, isReceived) in [
            (UpdateResult.done, true), (.doneWith(reason: "r"), true), (.deferred(seconds: nil, reason: nil), true),
            (.failed(isPermanent: false, reason: nil), true), (.unsupported, false),
        ] {
            var machine = CompletionMachine()
            machine.offered()
            expect(true, machine.reported(result, at: now))
            #expect(machine.isReceived == isReceived && machine.mayBeKnown == isReceived, "\(result)")
        }
    }

    @Test func `a device that returns changes nothing that did not end with its departure`() {
        for state in CompletionMachine.State.allCases where state != .gone {
            var machine = CompletionMachine(state, attempt: 1)
            machine.returned(at: now)
            #expect(machine == CompletionMachine(state, attempt: 1))
        }
    }

    @Test func `an update blocks others only while it is neither final nor parked`() {
        for state in CompletionMachine.State.allCases {
            let holdsUp = [.waiting, .stored, .deferred, .failed].contains(state)
            #expect(CompletionMachine(state, attempt: 1).blocksOthers == holdsUp)
        }
    }
}
