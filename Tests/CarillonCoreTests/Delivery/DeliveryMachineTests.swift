import CarillonCore
import CarillonWire
import TestSupport
import Testing

private func page(_ envelopes: [Envelope], isComplete: Bool = true) -> InboxRead {
    .page(InboxPage(envelopes: envelopes, isComplete: isComplete))
}

extension [DeliveryMachine.Action] {
    fileprivate var given: [Envelope] { compactMap { if case .deliver(let envelope) = $0 { envelope } else { nil } } }
    fileprivate var gives: Bool { !given.isEmpty }
    fileprivate var load: PageRequest? {
        compactMap { if case .load(let load) = $0 { load } else { nil } }.first
    }
    fileprivate var isCaughtUp: Bool { contains(.caughtUp) }
}

struct DeliveryMachineTests {
    private func live(limits: DeliveryMachine.Limits = .init(envelopes: 4, bytes: 10_000)) -> DeliveryMachine {
        var machine = DeliveryMachine(limits: limits)
        _ = machine.began()
        _ = machine.loaded(page([]), at: Sample.now)
        return machine
    }

    @Test func `a connection first catches up, and reports it once`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        #expect(machine.began() == .init(after: 0, limit: 4, bytes: 10_000))
        let loaded = machine.loaded(page([Sample.envelope(1), Sample.envelope(2)]), at: Sample.now)
        #expect(loaded.given.map(\.position) == [1, 2])
        #expect(loaded.isCaughtUp)
        #expect(loaded.load == nil)
        let load = machine.storedMore(at: Sample.now).load
        #expect(load?.after == 2)
        #expect(!machine.loaded(page([Sample.envelope(3)]), at: Sample.now).isCaughtUp)
    }

    @Test func `when live, an offer is delivered at once, while there is space`() {
        var machine = live()
        for position in 1...4 {
            #expect(machine.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now).gives)
        }
        #expect(machine.offered(Sample.envelope(5), isVolatile: false, at: Sample.now) == [])
        #expect(machine.offered(Sample.envelope(6), isVolatile: true, at: Sample.now) == [.answerOffer(wasAccepted: false)])
        #expect(machine.unacknowledgedCount == 4)
    }

    @Test func `after a full window, the rest is loaded from the store, in order and without a gap`() {
        var machine = live()
        for position in 1...5 { _ = machine.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        #expect(machine.finished(Sample.id(1)).isEmpty)
        let load = machine.finished(Sample.id(2)).load
        #expect(load?.after == 4)
        #expect(load?.limit == 2)
        #expect(machine.offered(Sample.envelope(6), isVolatile: false, at: Sample.now) == [])
        let loaded = machine.loaded(page([Sample.envelope(5)]), at: Sample.now)
        #expect(loaded.given.map(\.position) == [5])
        #expect(loaded.load == nil)
        let next = machine.finished(Sample.id(3)).load
        #expect(next?.after == 5)
        #expect(machine.loaded(page([Sample.envelope(6)]), at: Sample.now).given.map(\.position) == [6])
        #expect(machine.offered(Sample.envelope(7), isVolatile: false, at: Sample.now).gives)
    }

    @Test func `an offer during a load is not delivered before the loaded messages`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 8, bytes: 10_000))
        _ = machine.began()
        #expect(machine.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == [])
        let loaded = machine.loaded(page([Sample.envelope(1), Sample.envelope(2)]), at: Sample.now)
        #expect(loaded.load?.after == 2)
        #expect(!loaded.isCaughtUp)
        let rest = machine.loaded(page([Sample.envelope(3)]), at: Sample.now)
        #expect(rest.given.map(\.position) == [3])
        #expect(rest.isCaughtUp)
    }

    @Test func `bytes limit the window too, and a larger message is still delivered`() {
        var machine = live(limits: .init(envelopes: 10, bytes: 400))
        #expect(machine.offered(Sample.envelope(1, bytes: 1000), isVolatile: false, at: Sample.now).gives)
        #expect(machine.offered(Sample.envelope(2, bytes: 1), isVolatile: false, at: Sample.now) == [])
        #expect(machine.finished(Sample.id(1)).load?.after == 1)
    }

    @Test func `a message that was withdrawn while it was read is not delivered`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        #expect(machine.withdrew(.envelope(1)).isEmpty)
        let loaded = machine.loaded(page([Sample.envelope(1), Sample.envelope(2)]), at: Sample.now)
        #expect(loaded.given.map(\.position) == [2])
    }

    @Test func `envelopes that were withdrawn together are taken out, and a page that may have them is read again`() {
        var machine = live()
        for position in 1...5 { _ = machine.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        let given = machine.unacknowledgedCount
        #expect(given > 1)
        _ = machine.withdrew(.envelopes([1, 2, 99]))
        #expect(machine.unacknowledgedCount == given - 2)
        #expect(!machine.holds(Sample.id(1)) && machine.holds(Sample.id(3)))

        var loading = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = loading.began()
        _ = loading.withdrew(.envelopes([2]))
        let loaded = loading.loaded(page([Sample.envelope(1), Sample.envelope(2)]), at: Sample.now)
        #expect(loaded.given.isEmpty && loaded.load?.after == 0)
        let again = loading.loaded(page([Sample.envelope(1)]), at: Sample.now)
        #expect(again.given.map(\.position) == [1])
    }

    @Test func `the messages of a closed channel are not delivered, and the notice of its end is`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        _ = machine.withdrew(.all(of: .channel(ChannelSerial(1))))
        let closed = Sample.envelope(2, kind: .channelClosed)
        let news = Sample.envelope(3, kind: .pingFailed(.noConnection))
        let loaded = machine.loaded(page([Sample.envelope(1), closed, news]), at: Sample.now)
        #expect(loaded.given.map(\.position) == [2])
    }

    @Test func `the messages of a channel that was closed take no room any more`() {
        var machine = live()
        for position in 1...5 { _ = machine.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        #expect(machine.withdrew(.all(of: .channel(ChannelSerial(2)))).isEmpty)
        #expect(machine.withdrew(.all(of: .channel(ChannelSerial(1)))).load?.after == 4)
        #expect(machine.unacknowledgedCount == 0)
    }

    @Test func `an unanswered message of TTL 0 takes space for a minute`() {
        var machine = live(limits: .init(envelopes: 1, bytes: 10_000))
        #expect(machine.offered(Sample.envelope(1, ttl: 0), isVolatile: true, at: Sample.now).gives)
        let late = Sample.now.adding(seconds: 59)
        #expect(
            machine.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: late) == [.answerOffer(wasAccepted: false)])
        let later = Sample.now.adding(seconds: 60)
        #expect(machine.offered(Sample.envelope(3, ttl: 0), isVolatile: true, at: later).gives)
    }

    @Test func `space of expired messages causes one further load, and is reported`() {
        var machine = live(limits: .init(envelopes: 2, bytes: 10_000))
        for position in 1...3 {
            _ = machine.offered(Sample.envelope(Int64(position), ttl: 1), isVolatile: false, at: Sample.now)
        }
        #expect(machine.storedMore(at: Sample.now.adding(seconds: 1)).load?.after == 2)
    }

    @Test func `a message that expired while it was read is not delivered`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        let loaded = machine.loaded(
            page([Sample.envelope(1, ttl: 1), Sample.envelope(2)]), at: Sample.now.adding(seconds: 1))
        #expect(loaded.given.map(\.position) == [2])
    }

    @Test func `when the connection ends, only volatile envelopes are lost`() {
        var machine = live()
        _ = machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now)
        _ = machine.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now)
        #expect(machine.disconnected() == [.finish(Sample.id(2), .dropped)])
    }

    // MARK: The output

    @Test func `while the output is paused nothing is delivered, and missed messages are loaded from the store`() {
        var machine = live()
        machine.outputPaused()
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == [])
        #expect(
            machine.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        #expect(machine.storedMore(at: Sample.now).isEmpty)
        #expect(machine.finished(Sample.id(1)).isEmpty)
        #expect(machine.outputResumed(at: Sample.now).load?.after == 0)
        #expect(machine.loaded(page([Sample.envelope(1)]), at: Sample.now).given.map(\.position) == [1])
        #expect(machine.offered(Sample.envelope(3), isVolatile: false, at: Sample.now).gives)
    }

    @Test func `a load that returns while the output is paused is repeated after the pause`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        machine.outputPaused()
        let loaded = machine.loaded(page([Sample.envelope(1)]), at: Sample.now)
        #expect(loaded.given.isEmpty && loaded.load == nil && !loaded.isCaughtUp)
        #expect(machine.outputResumed(at: Sample.now).load?.after == 0)
    }

    @Test func `a pause without messages requests nothing`() {
        var machine = live()
        machine.outputPaused()
        #expect(machine.outputResumed(at: Sample.now).isEmpty)
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now).gives)
    }

    @Test func `a load requests no more than the window allows`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 100, bytes: 10_000, outputBytes: 700))
        #expect(machine.began().bytes == 700)
    }

    @Test func `room that expiry made during a pause is used after it`() {
        var machine = live(limits: .init(envelopes: 2, bytes: 10_000))
        for position in 1...2 {
            _ = machine.offered(Sample.envelope(Int64(position), ttl: 1), isVolatile: false, at: Sample.now)
        }
        machine.outputPaused()
        #expect(machine.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == [])
        #expect(machine.outputResumed(at: Sample.now.adding(seconds: 1)).load?.after == 2)
    }

    @Test func `if more was withdrawn during a load than is remembered, the load is repeated`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        for position in 1...10_000 { #expect(machine.withdrew(.envelope(Int64(position))).isEmpty) }
        let loaded = machine.loaded(page([Sample.envelope(20_000)]), at: Sample.now)
        #expect(loaded.given.isEmpty)
        #expect(loaded.load?.after == 0)
        #expect(machine.loaded(page([Sample.envelope(20_000)]), at: Sample.now).given.map(\.position) == [20_000])
    }

    @Test func `a load beyond the window shows that more messages wait`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 2, bytes: 10_000, lookAhead: 1))
        #expect(machine.began().limit == 3)
        let loaded = machine.loaded(page((1...3).map { Sample.envelope($0) }, isComplete: false), at: Sample.now)
        #expect(loaded.given.map(\.position) == [1, 2])
        #expect(machine.moreWaits)
        var full = DeliveryMachine(limits: .init(envelopes: 2, bytes: 10_000, lookAhead: 1))
        _ = full.began()
        #expect(full.loaded(page((1...2).map { Sample.envelope($0) }), at: Sample.now).isCaughtUp)
        #expect(!full.moreWaits)
    }

    @Test func `a load that fails, or finds no device, is the end`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 4, bytes: 10_000))
        _ = machine.began()
        #expect(machine.loaded(.deviceGone, at: Sample.now) == [.end(.deviceGone)])
        let fault = StoreFault(.unavailable, "")
        #expect(machine.loadFailed(fault) == [.end(.failed(fault))])
    }

    @Test func `a peer that does not know a kind does not receive it, and it takes no space`() {
        var machine = DeliveryMachine(limits: .init(envelopes: 1, bytes: 10_000), version: 0)
        _ = machine.began()
        let event = Sample.envelope(1, kind: .channelClosed)
        let loaded = machine.loaded(page([event]), at: Sample.now)
        #expect(loaded == [.finish(event.id, .unsupported), .caughtUp])
        #expect(machine.offered(Sample.envelope(2), isVolatile: false, at: Sample.now).gives)
    }

    @Test func `firings that the vendor's service can show stay in the inbox of a peer that does not know them`() {
        for (version, isGiven) in [(0, false), (3, false), (4, true)] {
            var machine = DeliveryMachine(limits: .init(), version: version)
            _ = machine.began()
            let fired = Sample.envelope(1, kind: .fired(body: [1], countsBadge: false))
            #expect(machine.loaded(page([fired]), at: Sample.now) == (isGiven ? [.deliver(fired), .caughtUp] : [.caughtUp]))
            #expect(machine.unacknowledgedCount == (isGiven ? 1 : 0))
        }
    }

    /// A model of the store and the connection, with random late offers, offers between loads, withdrawals, expiry, pauses of the
    /// output, and acknowledgements.
    @Test(arguments: RandomSeed.some(80))
    func `in random sequences each wanted message is delivered once, in order, and no other`(seed: UInt64) {
        var model = DeliveryModel(seed: seed)
        var turns = ScenarioTurns(400)
        while turns.next(unless: model.givenCount > 20) { model.step() }
        model.windDown()
        #expect(model.faults.isEmpty, "seed \(seed): \(model.faults.prefix(3))")
        #expect(model.givenCount > 20, "seed \(seed) delivered too few messages")
    }
}

/// The model that ``DeliveryMachine`` is compared with.
private struct DeliveryModel {
    private enum Fate { case waiting, withdrawn, acknowledged }
    private struct Stored {
        var envelope: Envelope
        var fate = Fate.waiting
        var wasAccepted = false
    }

    private(set) var faults: [String] = []
    private var generator: SeededRandom
    private var machine = DeliveryMachine(limits: .init(envelopes: 5, bytes: 3000, outputBytes: 1000))
    private var stored: [Stored] = []
    /// Offers on their way from the publisher, in order.
    private var offers: [Envelope] = []
    private var pending: PageRequest?
    /// The entries that a load read, before they arrive.
    private var answer: (envelopes: [Envelope], isComplete: Bool)?
    private var lastGiven: Int64 = 0
    private var isPaused = false
    private var now = Sample.now

    init(seed: UInt64) {
        generator = SeededRandom(seed: seed)
        pending = machine.began()
    }

    var givenCount: Int { stored.count { $0.wasAccepted } }

    private mutating func want(_ load: PageRequest?) {
        guard let load else { return }
        if pending != nil || answer != nil { faults.append("two loads at once") }
        if isPaused { faults.append("a load while paused") }
        if load.limit < 1 || load.bytes > 1000 { faults.append("a load of \(load)") }
        pending = load
    }

    private mutating func give(_ envelope: Envelope) {
        let index = Int(envelope.position) - 1
        if stored[index].wasAccepted { faults.append("\(envelope.position) twice") }
        if stored[index].fate == .withdrawn { faults.append("\(envelope.position) was withdrawn") }
        if envelope.position < lastGiven { faults.append("\(envelope.position) after \(lastGiven)") }
        if envelope.isExpired(at: now) { faults.append("\(envelope.position) is late") }
        if isPaused { faults.append("\(envelope.position) while paused") }
        stored[index].wasAccepted = true
        lastGiven = envelope.position
    }

    private mutating func append(isOffered: Bool) {
        let position = Int64(stored.count + 1)
        var envelope = Sample.envelope(position, bytes: Int.random(in: 0...900, using: &generator))
        envelope.expiresAt = now.adding(seconds: Int64.random(in: 1...40, using: &generator))
        stored.append(Stored(envelope: envelope))
        if isOffered { offers.append(envelope) } else { want(machine.storedMore(at: now).load) }
    }

    private mutating func deliverOffer() {
        guard !offers.isEmpty else { return }
        let envelope = offers.removeFirst()
        let actions = machine.offered(envelope, isVolatile: false, at: now)
        for envelope in actions.given { give(envelope) }
        want(actions.load)
    }

    private mutating func read() {
        guard let load = pending else { return }
        pending = nil
        let rest = stored.filter {
            $0.envelope.position > load.after && $0.fate == .waiting && !$0.envelope.isExpired(at: now)
        }.map(\.envelope)
        var size = 0
        var page: [Envelope] = []
        for envelope in rest.prefix(load.limit) where size < load.bytes {
            page.append(envelope)
            size += envelope.byteCount
        }
        answer = (page, page.count < load.limit && size < load.bytes)
    }

    private mutating func deliverAnswer() {
        guard let (envelopes, isComplete) = answer else { return }
        answer = nil
        let loaded = machine.loaded(page(envelopes, isComplete: isComplete), at: now)
        for envelope in loaded.given { give(envelope) }
        want(loaded.load)
    }

    private mutating func acknowledge() {
        guard let index = stored.firstIndex(where: { $0.wasAccepted && $0.fate == .waiting }) else { return }
        stored[index].fate = .acknowledged
        want(machine.finished(stored[index].envelope.id).load)
    }

    /// As a newer message of the topic or its sender does: only stored ones, whose offers are not pending.
    private mutating func withdraw() {
        guard let index = stored.indices.filter({ stored[$0].fate == .waiting }).randomElement(using: &generator),
            !offers.contains(stored[index].envelope)
        else { return }
        stored[index].fate = .withdrawn
        want(machine.withdrew(.envelope(stored[index].envelope.position)).load)
    }

    mutating func step() {
        switch Int.random(in: 0...11, using: &generator) {
        case 0, 1: append(isOffered: true)
        // A message that is not offered is reported in its turn: after the earlier offers.
        case 2:
            while !offers.isEmpty { deliverOffer() }
            append(isOffered: false)
        case 3, 4: deliverOffer()
        case 5: read()
        case 6: deliverAnswer()
        case 7, 8: acknowledge()
        case 9: withdraw()
        case 10: now = now.adding(seconds: Int64.random(in: 0...3, using: &generator))
        default: pauseOrResume()
        }
    }

    private mutating func pauseOrResume() {
        isPaused.toggle()
        if isPaused {
            machine.outputPaused()
            return
        }
        want(machine.outputResumed(at: now).load)
    }

    /// All events occur: the machine ignores the stale ones.
    mutating func windDown() {
        if isPaused { pauseOrResume() }
        for _ in 0..<3 * stored.count + 30 {
            deliverOffer()
            read()
            deliverAnswer()
            acknowledge()
        }
        let forgotten = stored.filter { !$0.wasAccepted && $0.fate == .waiting && !$0.envelope.isExpired(at: now) }
        if !forgotten.isEmpty { faults.append("never given: \(forgotten.map(\.envelope.position))") }
    }
}
