import CarillonCore
import Testing

struct SubscriptionMachineTests {
    private let start = Timestamp(milliseconds: 1_700_000_000_000)

    private func after(_ seconds: Int64) -> Timestamp { start.adding(seconds: seconds) }

    @Test func `a subscription with the policy once fires once, until it is armed anew`() {
        var machine = SubscriptionMachine(.once, at: start)
        #expect(machine.isArmed && machine.status == .subscribed && machine.statusAt == start)
        #expect(machine.fire(ofRevision: 1, at: after(5)) == .counts)
        #expect(!machine.isArmed && machine.status == .triggered && machine.statusAt == after(5))
        #expect(machine.fire(ofRevision: 1, at: after(6)) == .late)
        machine.change(at: after(7))
        #expect(machine.isArmed && machine.status == .subscribed && machine.statusAt == after(7))
        #expect(machine.fire(ofRevision: 1, at: after(8)) == .late, "it was found before the change")
        #expect(machine.fire(ofRevision: machine.revision, at: after(9)) == .counts)
        #expect(machine.lastFiredAt == after(9))
    }

    @Test func `a change of one that waits arms it, and changes no status`() {
        var machine = SubscriptionMachine(.once, at: start)
        machine.change(at: after(7))
        #expect(machine.statusAt == start && machine.revision == 2)
        #expect(machine.fire(ofRevision: 1, at: after(8)) == .late)
    }

    @Test func `those that fire again stay subscribed`() {
        var crossing = SubscriptionMachine(.everyCrossing, at: start)
        for second in Int64(1)...3 { #expect(crossing.fire(ofRevision: 1, at: after(second)) == .counts) }
        #expect(crossing.status == .subscribed && crossing.statusAt == start && crossing.lastFiredAt == after(3))
    }

    @Test func `a cool-down delays firings, and a clock that was set back does not prolong it`() {
        var machine = SubscriptionMachine(.every(coolDownSeconds: 60), at: start)
        #expect(machine.fire(ofRevision: 1, at: start) == .counts)
        #expect(machine.fire(ofRevision: 1, at: after(59)) == .tooSoon)
        #expect(machine.fire(ofRevision: 1, at: after(60)) == .counts)
        #expect(machine.fire(ofRevision: 1, at: after(-3600)) == .counts)
        #expect(machine.fire(ofRevision: 1, at: after(-3541)) == .tooSoon)
        machine.change(.every(coolDownSeconds: 10), at: after(-3540))
        #expect(machine.fire(ofRevision: 2, at: after(-3540)) == .counts, "another policy begins anew")
        machine.change(at: after(-3539))
        #expect(machine.fire(ofRevision: 3, at: after(-3539)) == .tooSoon, "to arm it anew does not end the pause")
    }

    @Test func `while its device is suspended nothing fires, and nothing is used`() {
        var machine = SubscriptionMachine(.once, at: start)
        let isPaused = machine.pause(true)
        let again = machine.pause(true)
        #expect(isPaused && !again && !machine.isArmed)
        #expect(machine.fire(ofRevision: 1, at: after(1)) == .late)
        let isResumed = machine.pause(false)
        #expect(isResumed && machine.isArmed && machine.status == .subscribed)
        #expect(machine.fire(ofRevision: 1, at: after(2)) == .counts)
        let stored = SubscriptionMachine(
            .once, machine.status, at: machine.statusAt, revision: 1, lastFiredAt: machine.lastFiredAt, isPaused: false)
        #expect(stored == machine)
    }
}
