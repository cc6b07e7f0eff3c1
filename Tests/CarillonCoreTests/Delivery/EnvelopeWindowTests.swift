import CarillonCore
import CarillonWire
import TestSupport
import Testing

struct EnvelopeWindowTests {
    private func live(limits: EnvelopeWindow.Limits = .init(envelopes: 4, bytes: 10_000)) -> EnvelopeWindow {
        var window = EnvelopeWindow(limits: limits)
        _ = window.began()
        _ = window.loaded([], isComplete: true, at: Sample.now)
        return window
    }

    @Test func `a connection first catches up, and says so once`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        #expect(window.began() == .init(after: 0, limit: 4, bytes: 10_000))
        let loaded = window.loaded([Sample.envelope(1), Sample.envelope(2)], isComplete: true, at: Sample.now)
        #expect(loaded.give.map(\.position) == [1, 2])
        #expect(loaded.isCaughtUp)
        #expect(loaded.load == nil)
        let load = window.storedMore(at: Sample.now)
        #expect(load?.after == 2)
        #expect(!window.loaded([Sample.envelope(3)], isComplete: true, at: Sample.now).isCaughtUp)
    }

    @Test func `when live, an offer is given at once, while there is room`() {
        var window = live()
        for position in 1...4 {
            #expect(window.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) == .give)
        }
        #expect(window.offered(Sample.envelope(5), isVolatile: false, at: Sample.now) == .later(nil))
        #expect(window.offered(Sample.envelope(6), isVolatile: true, at: Sample.now) == .later(nil))
        #expect(window.unacknowledgedCount == 4)
    }

    @Test func `after the window was full, the rest comes from the store, in order and without a gap`() {
        var window = live()
        for position in 1...5 { _ = window.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        #expect(window.settled(Sample.id(1)) == nil)
        let load = window.settled(Sample.id(2))
        #expect(load?.after == 4)
        #expect(load?.limit == 2)
        #expect(window.offered(Sample.envelope(6), isVolatile: false, at: Sample.now) == .later(nil))
        let loaded = window.loaded([Sample.envelope(5)], isComplete: true, at: Sample.now)
        #expect(loaded.give.map(\.position) == [5])
        #expect(loaded.load == nil)
        let next = window.settled(Sample.id(3))
        #expect(next?.after == 5)
        #expect(window.loaded([Sample.envelope(6)], isComplete: true, at: Sample.now).give.map(\.position) == [6])
        #expect(window.offered(Sample.envelope(7), isVolatile: false, at: Sample.now) == .give)
    }

    @Test func `an offer during a load is not given before what was loaded`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 8, bytes: 10_000))
        _ = window.began()
        #expect(window.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == .later(nil))
        let loaded = window.loaded([Sample.envelope(1), Sample.envelope(2)], isComplete: true, at: Sample.now)
        #expect(loaded.load?.after == 2)
        #expect(!loaded.isCaughtUp)
        let rest = window.loaded([Sample.envelope(3)], isComplete: true, at: Sample.now)
        #expect(rest.give.map(\.position) == [3])
        #expect(rest.isCaughtUp)
    }

    @Test func `bytes bound the window too, and a message larger than it still goes`() {
        var window = live(limits: .init(envelopes: 10, bytes: 400))
        #expect(window.offered(Sample.envelope(1, bytes: 1000), isVolatile: false, at: Sample.now) == .give)
        #expect(window.offered(Sample.envelope(2, bytes: 1), isVolatile: false, at: Sample.now) == .later(nil))
        #expect(window.settled(Sample.id(1))?.after == 1)
    }

    @Test func `what was withdrawn while it was being read is not given`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        _ = window.began()
        #expect(window.withdrew(.envelope(1)) == nil)
        let loaded = window.loaded([Sample.envelope(1), Sample.envelope(2)], isComplete: true, at: Sample.now)
        #expect(loaded.give.map(\.position) == [2])
    }

    @Test func `the messages of a channel that was closed are not given, and what says so is`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        _ = window.began()
        _ = window.withdrew(.all(of: .channel(ChannelSerial(1))))
        let closed = Sample.envelope(2, kind: .channelClosed)
        let news = Sample.envelope(3, kind: .pingFailed(.noConnection))
        let loaded = window.loaded([Sample.envelope(1), closed, news], isComplete: true, at: Sample.now)
        #expect(loaded.give.map(\.position) == [2])
    }

    @Test func `the messages of a channel that was closed take no room any more`() {
        var window = live()
        for position in 1...5 { _ = window.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        #expect(window.withdrew(.all(of: .channel(ChannelSerial(2)))) == nil)
        #expect(window.withdrew(.all(of: .channel(ChannelSerial(1))))?.after == 4)
        #expect(window.unacknowledgedCount == 0)
    }

    @Test func `a message of TTL 0 that is not answered for takes room for a minute`() {
        var window = live(limits: .init(envelopes: 1, bytes: 10_000))
        #expect(window.offered(Sample.envelope(1, ttl: 0), isVolatile: true, at: Sample.now) == .give)
        let late = Sample.now.adding(seconds: 59)
        #expect(window.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: late) == .later(nil))
        let later = Sample.now.adding(seconds: 60)
        #expect(window.offered(Sample.envelope(3, ttl: 0), isVolatile: true, at: later) == .give)
    }

    @Test func `making room by what expired asks for more only once, and says so`() {
        var window = live(limits: .init(envelopes: 2, bytes: 10_000))
        for position in 1...3 {
            _ = window.offered(Sample.envelope(Int64(position), ttl: 1), isVolatile: false, at: Sample.now)
        }
        #expect(window.storedMore(at: Sample.now.adding(seconds: 1))?.after == 2)
    }

    @Test func `what expired while it was being read is not given`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        _ = window.began()
        let loaded = window.loaded(
            [Sample.envelope(1, ttl: 1), Sample.envelope(2)], isComplete: true, at: Sample.now.adding(seconds: 1))
        #expect(loaded.give.map(\.position) == [2])
    }

    @Test func `when the connection ends, only volatile envelopes are lost`() {
        var window = live()
        _ = window.offered(Sample.envelope(1), isVolatile: false, at: Sample.now)
        _ = window.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now)
        #expect(window.ended() == [Sample.id(2)])
    }

    // MARK: The output

    @Test func `while the output is paused nothing is given, and what was missed comes from the store`() {
        var window = live()
        window.outputPaused()
        #expect(window.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == .later(nil))
        #expect(window.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now) == .later(nil))
        #expect(window.storedMore(at: Sample.now) == nil)
        #expect(window.settled(Sample.id(1)) == nil)
        #expect(window.outputResumed(at: Sample.now)?.after == 0)
        #expect(window.loaded([Sample.envelope(1)], isComplete: true, at: Sample.now).give.map(\.position) == [1])
        #expect(window.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == .give)
    }

    @Test func `a load that comes back while the output is paused is read again after it`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        _ = window.began()
        window.outputPaused()
        let loaded = window.loaded([Sample.envelope(1)], isComplete: true, at: Sample.now)
        #expect(loaded.give.isEmpty && loaded.load == nil && !loaded.isCaughtUp)
        #expect(window.outputResumed(at: Sample.now)?.after == 0)
    }

    @Test func `a pause without anything to give asks for nothing`() {
        var window = live()
        window.outputPaused()
        #expect(window.outputResumed(at: Sample.now) == nil)
        #expect(window.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == .give)
    }

    @Test func `a load asks for no more than may be on its way`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 100, bytes: 10_000, outputBytes: 700))
        #expect(window.began()?.bytes == 700)
    }

    @Test func `room that expiry made during a pause is used after it`() {
        var window = live(limits: .init(envelopes: 2, bytes: 10_000))
        for position in 1...2 {
            _ = window.offered(Sample.envelope(Int64(position), ttl: 1), isVolatile: false, at: Sample.now)
        }
        window.outputPaused()
        #expect(window.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == .later(nil))
        #expect(window.outputResumed(at: Sample.now.adding(seconds: 1))?.after == 2)
    }

    @Test func `when more was withdrawn during a load than is remembered, it is read again`() {
        var window = EnvelopeWindow(limits: .init(envelopes: 4, bytes: 10_000))
        _ = window.began()
        for position in 1...10_000 { #expect(window.withdrew(.envelope(Int64(position))) == nil) }
        let loaded = window.loaded([Sample.envelope(20_000)], isComplete: true, at: Sample.now)
        #expect(loaded.give.isEmpty)
        #expect(loaded.load?.after == 0)
        #expect(window.loaded([Sample.envelope(20_000)], isComplete: true, at: Sample.now).give.map(\.position) == [20_000])
    }

    /// A model of the store and the connection: offers that come late and between loads, withdrawals, expiry, pauses of
    /// the output, and acknowledgements, all by chance.
    @Test(arguments: RandomSeed.some(80))
    func `whatever happens, what is wanted is given once, in order, and nothing else is`(seed: UInt64) {
        var model = WindowModel(seed: seed)
        for _ in 0..<400 { model.step() }
        model.windDown()
        #expect(model.faults.isEmpty, "seed \(seed): \(model.faults.prefix(3))")
        #expect(model.givenCount > 20, "seed \(seed) gave too little to mean anything")
    }
}

/// What ``EnvelopeWindow`` is held against.
private struct WindowModel {
    private enum Fate { case waiting, withdrawn, acknowledged }
    private struct Stored {
        var envelope: Envelope
        var fate = Fate.waiting
        var wasGiven = false
    }

    private(set) var faults: [String] = []
    private var generator: SeededRandom
    private var window = EnvelopeWindow(limits: .init(envelopes: 5, bytes: 3000, outputBytes: 1000))
    private var stored: [Stored] = []
    /// Offers on their way from the publisher, in order.
    private var offers: [Envelope] = []
    private var pending: EnvelopeWindow.Load?
    /// What a load read, on its way back.
    private var answer: (envelopes: [Envelope], isComplete: Bool)?
    private var lastGiven: Int64 = 0
    private var isPaused = false
    private var now = Sample.now

    init(seed: UInt64) {
        generator = SeededRandom(seed: seed)
        pending = window.began()
    }

    var givenCount: Int { stored.count { $0.wasGiven } }

    private mutating func want(_ load: EnvelopeWindow.Load?) {
        guard let load else { return }
        if pending != nil || answer != nil { faults.append("two loads at once") }
        if isPaused { faults.append("a load while paused") }
        if load.limit < 1 || load.bytes > 1000 { faults.append("a load of \(load)") }
        pending = load
    }

    private mutating func give(_ envelope: Envelope) {
        let index = Int(envelope.position) - 1
        if stored[index].wasGiven { faults.append("\(envelope.position) twice") }
        if stored[index].fate == .withdrawn { faults.append("\(envelope.position) was withdrawn") }
        if envelope.position < lastGiven { faults.append("\(envelope.position) after \(lastGiven)") }
        if envelope.isExpired(at: now) { faults.append("\(envelope.position) is late") }
        if isPaused { faults.append("\(envelope.position) while paused") }
        stored[index].wasGiven = true
        lastGiven = envelope.position
    }

    private mutating func append(isOffered: Bool) {
        let position = Int64(stored.count + 1)
        var envelope = Sample.envelope(position, bytes: Int.random(in: 0...900, using: &generator))
        envelope.expiresAt = now.adding(seconds: Int64.random(in: 1...40, using: &generator))
        stored.append(Stored(envelope: envelope))
        if isOffered { offers.append(envelope) } else { want(window.storedMore(at: now)) }
    }

    private mutating func deliverOffer() {
        guard !offers.isEmpty else { return }
        let envelope = offers.removeFirst()
        switch window.offered(envelope, isVolatile: false, at: now) {
        case .give: give(envelope)
        case .later(let load): want(load)
        }
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
        let loaded = window.loaded(envelopes, isComplete: isComplete, at: now)
        for envelope in loaded.give { give(envelope) }
        want(loaded.load)
    }

    private mutating func acknowledge() {
        guard let index = stored.firstIndex(where: { $0.wasGiven && $0.fate == .waiting }) else { return }
        stored[index].fate = .acknowledged
        want(window.settled(stored[index].envelope.id))
    }

    /// As a newer message of the topic or its sender does: only what was stored, so that its offer is not on its way.
    private mutating func withdraw() {
        guard let index = stored.indices.filter({ stored[$0].fate == .waiting }).randomElement(using: &generator),
            !offers.contains(stored[index].envelope)
        else { return }
        stored[index].fate = .withdrawn
        want(window.withdrew(.envelope(stored[index].envelope.position)))
    }

    mutating func step() {
        switch Int.random(in: 0...11, using: &generator) {
        case 0, 1: append(isOffered: true)
        // What is not offered is said in its turn: after the offers that were made before it.
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
            window.outputPaused()
            return
        }
        want(window.outputResumed(at: now))
    }

    /// Everything that can happen happens: what is left over was forgotten by the window.
    mutating func windDown() {
        if isPaused { pauseOrResume() }
        for _ in 0..<3 * stored.count + 30 {
            deliverOffer()
            read()
            deliverAnswer()
            acknowledge()
        }
        let forgotten = stored.filter { !$0.wasGiven && $0.fate == .waiting && !$0.envelope.isExpired(at: now) }
        if !forgotten.isEmpty { faults.append("never given: \(forgotten.map(\.envelope.position))") }
    }
}
