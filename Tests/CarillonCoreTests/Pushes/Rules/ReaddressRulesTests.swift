import CarillonCore
import TestSupport
import Testing

/// The changes of pushes when their device has another address, or can be reached again.
struct ReaddressRulesTests {
    private let now = WakeSample.now
    private let queue = WakeSample.queue
    private let rules = OutboxRules()

    private func push(
        _ serial: Int64, _ state: PushState, _ kind: PushKind = .alert, _ change: (inout UnacceptedPush) -> Void = { _ in }
    ) -> UnacceptedPush {
        var push = UnacceptedPush(
            serial: serial, kind: kind, state: state, queue: queue.number, dueAt: nil,
            expiresAt: now.adding(milliseconds: 1), hasEnvelope: true)
        change(&push)
        return push
    }

    private func readdress(_ pushes: [UnacceptedPush], isOther: Bool = false) -> Readdressing {
        rules.readdress(pushes, to: queue, hasOtherAddress: isOther, at: now)
    }

    @Test func `an alert that waits for an address is sent, while its message waits`() {
        #expect(readdress([push(1, .scheduled)]).sent.map(\.serial) == [1])
        #expect(readdress([push(1, .scheduled)]).sent.map(\.dueAt) == [now])
        let gone = push(1, .scheduled) { $0.hasEnvelope = false }
        #expect(readdress([gone]).sent.isEmpty)
        #expect(readdress([gone]).moved == [.init(serial: 1, dueAt: now)], "it is checked when it is leased")
        let expired = push(1, .scheduled) { $0.expiresAt = WakeSample.now }
        #expect(readdress([expired]).sent.isEmpty)
        let unconditional = push(1, .scheduled, .unconditional) { $0.hasEnvelope = false }
        #expect(readdress([unconditional]).sent.map(\.serial) == [1])
        let wake = push(1, .scheduled, .wake)
        #expect(readdress([wake]).sent.isEmpty)
        #expect(readdress([wake]).moved == [.init(serial: 1, dueAt: now)])
    }

    @Test func `an alert that is due keeps its time, unless that is of the address before`() {
        let dueAt = now.adding(seconds: 30)
        let due = push(1, .scheduled) { $0.dueAt = dueAt }
        #expect(readdress([due], isOther: true).moved == [.init(serial: 1, dueAt: dueAt)])
        let retried = push(1, .scheduled) { ($0.dueAt, $0.hasReason) = (dueAt, true) }
        #expect(readdress([retried]).moved == [.init(serial: 1, dueAt: dueAt)])
        #expect(readdress([retried], isOther: true).sent.map(\.dueAt) == [now])
        let elsewhere = push(1, .scheduled) { ($0.dueAt, $0.queue) = (dueAt, WakeSample.sandbox.number) }
        #expect(readdress([elsewhere]).sent.map(\.dueAt) == [dueAt])
        let wake = push(1, .scheduled, .wake) { ($0.dueAt, $0.hasReason) = (dueAt, true) }
        #expect(readdress([wake], isOther: true).moved == [.init(serial: 1, dueAt: now)])
    }

    @Test func `a push that was rejected or parked because of its address begins anew, if it awaits another one`() {
        for state in [PushState.rejected, .parked] {
            let awaiting = push(1, state) { $0.awaitsAddress = true }
            #expect(readdress([awaiting], isOther: true).sent.map(\.serial) == [1])
            let waits = readdress([awaiting]).sent.isEmpty
            #expect(waits == (state == .parked), "the address may be of use again")
            #expect(readdress([push(1, state)], isOther: true).sent.isEmpty)
            let gone = push(1, state) { ($0.awaitsAddress, $0.hasEnvelope) = (true, false) }
            #expect(readdress([gone], isOther: true).sent.isEmpty)
        }
    }

    @Test func `pushes that are under way or parked go to the push queue at once`() {
        for state in PushState.allCases {
            let changes = readdress([push(1, state) { $0.dueAt = WakeSample.now }, push(2, .rejected)])
            let moves = state == .leased || state == .parked
            #expect(changes.movesUnscheduled == moves, "\(state)")
            let moved: [Int64] = state == .scheduled ? [1] : []
            #expect(changes.moved.map(\.serial) == moved, "\(state)")
        }
        let sent = push(1, .parked) { $0.awaitsAddress = true }
        let isMoved = readdress([sent], isOther: true).movesUnscheduled
        #expect(!isMoved)
    }

    @Test func `the newest alerts are sent one a second, and a wake replaces the others`() {
        let waiting = (1...23).map { number in
            push(Int64(number), number == 2 ? .rejected : .scheduled) { $0.awaitsAddress = number == 2 }
        }
        let changes = readdress(waiting)
        #expect(changes.sent.map(\.serial) == Array(4...23))
        let seconds = Array(0..<20) as [Int64]
        let turns = seconds.map { now.adding(seconds: $0) }
        #expect(changes.sent.map(\.dueAt) == turns)
        #expect(changes.folded.map(\.serial) == [1, 2, 3])
        #expect(changes.folded.map(\.isCancelled) == [true, false, true])
        #expect(changes.moved.isEmpty)
    }

    // MARK: At random

    /// A row after everything, as text.
    private func naive(_ pushes: [UnacceptedPush], isOther: Bool) -> [String] {
        var wanted: [Int] = []
        for (place, push) in pushes.enumerated() {
            if push.kind == .wake || push.expiresAt <= now { continue }
            let isStale = isOther && push.hasReason
            if push.state == .scheduled {
                if push.dueAt != nil && push.queue == queue.number && !isStale { continue }
                if !push.hasEnvelope && push.kind != .unconditional { continue }
            } else if push.state == .rejected || push.state == .parked && isOther {
                if !push.awaitsAddress || !push.hasEnvelope { continue }
            } else {
                continue
            }
            wanted.append(place)
        }
        return pushes.enumerated().map { place, push in
            let isStale = isOther && push.hasReason
            if let index = wanted.firstIndex(of: place) {
                let age = wanted.count - 1 - index
                guard age < 20 else { return "\(push.serial) folded \(push.state != .rejected)" }
                let start = now.milliseconds + Int64(min(wanted.count, 20) - 1 - age) * 1000
                let due = push.state == .scheduled && !isStale ? push.dueAt?.milliseconds ?? start : start
                return "\(push.serial) sent \(max(start, due))"
            }
            switch push.state {
            case .scheduled:
                let due = isStale ? now.milliseconds : push.dueAt?.milliseconds ?? now.milliseconds
                return "\(push.serial) moved \(due)"
            case .leased, .parked: return "\(push.serial) moved"
            default: return "\(push.serial)"
            }
        }
    }

    private func lines(_ pushes: [UnacceptedPush], _ changes: Readdressing) -> [String] {
        var lines: [Int64: String] = [:]
        for alert in changes.sent { lines[alert.serial, default: ""] += " sent \(alert.dueAt.milliseconds)" }
        for alert in changes.folded { lines[alert.serial, default: ""] += " folded \(alert.isCancelled)" }
        for move in changes.moved { lines[move.serial, default: ""] += " moved \(move.dueAt.milliseconds)" }
        if changes.movesUnscheduled {
            // As the statement selects them: by their state, after the alerts were written.
            for push in pushes where push.state == .leased || push.state == .parked {
                if lines[push.serial] == nil { lines[push.serial] = " moved" }
            }
        }
        return pushes.map { "\($0.serial)\(lines[$0.serial] ?? "")" }
    }

    private func somePush(_ serial: Int64, _ random: inout SeededRandom) -> UnacceptedPush {
        let states = [PushState.scheduled, .scheduled, .leased, .rejected, .parked]
        let kind = PushKind.allCases.randomElement(using: &random) ?? .alert
        let isThere = Bool.random(using: &random)
        let due = Int64.random(in: -5000...30_000, using: &random)
        let end = Int64.random(in: -1...20, using: &random)
        var push = self.push(serial, states.randomElement(using: &random) ?? .scheduled, kind)
        push.queue = isThere ? queue.number : WakeSample.sandbox.number
        push.dueAt = Bool.random(using: &random) ? now.adding(milliseconds: due) : nil
        push.expiresAt = now.adding(milliseconds: end)
        push.hasReason = Bool.random(using: &random)
        push.awaitsAddress = Bool.random(using: &random)
        push.hasEnvelope = Int.random(in: 0..<5, using: &random) > 0
        return push
    }

    @Test func `in random sequences, each push goes to its environment`() {
        var random = SeededRandom.forTest()
        var counted: [String: Int] = [:]
        for _ in 0..<2000 {
            let isOther = Bool.random(using: &random)
            let count = Int64.random(in: 0...100, using: &random)
            let pushes = (0..<count).map { somePush($0, &random) }
            let result = lines(pushes, readdress(pushes, isOther: isOther))
            let expected = naive(pushes, isOther: isOther)
            #expect(result == expected)
            for line in expected {
                let what = line.split(separator: " ").dropFirst().first ?? "none"
                counted[String(what), default: 0] += 1
            }
            guard result == expected else { return }
        }
        for (name, minimum) in ["sent": 5000, "folded": 100, "moved": 5000, "none": 2000] {
            #expect(counted[name, default: 0] >= minimum, "\(name): \(counted)")
        }
    }
}
