import CarillonCore
import CarillonWire
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
        _ = window.withdrew(.messages(of: ChannelSerial(1)))
        let closed = Sample.envelope(2, kind: .channelClosed)
        let news = Sample.envelope(3, kind: .pingFailed(.noConnection))
        let loaded = window.loaded([Sample.envelope(1), closed, news], isComplete: true, at: Sample.now)
        #expect(loaded.give.map(\.position) == [2])
    }

    @Test func `the messages of a channel that was closed take no room any more`() {
        var window = live()
        for position in 1...5 { _ = window.offered(Sample.envelope(Int64(position)), isVolatile: false, at: Sample.now) }
        #expect(window.withdrew(.messages(of: ChannelSerial(2))) == nil)
        #expect(window.withdrew(.messages(of: ChannelSerial(1)))?.after == 4)
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

    /// A model of the store and the connection, under random offers, stores, loads and acknowledgements.
    @Test(arguments: 0..<50)
    func `whatever happens, every envelope is given once, in order`(seed: UInt64) {
        var generator = LinearGenerator(state: seed)
        var window = EnvelopeWindow(limits: .init(envelopes: 3, bytes: 100_000))
        var stored: [Int64] = []
        var given: [Int64] = []
        var acknowledged: Set<Int64> = []
        var pending = window.began()
        var next: Int64 = 1
        func read(_ load: EnvelopeWindow.Load) -> ([Envelope], Bool) {
            let rest = stored.filter { $0 > load.after && !acknowledged.contains($0) }
            return (rest.prefix(load.limit).map { Sample.envelope($0) }, rest.count < load.limit)
        }
        func want(_ load: EnvelopeWindow.Load?) {
            if let load {
                #expect(pending == nil, "one load at a time")
                pending = load
            }
        }
        for step in 0..<3000 {
            let isWindingDown = step > 250
            switch Int.random(in: isWindingDown ? 2...3 : 0...3, using: &generator) {
            case 0:
                stored.append(next)
                switch window.offered(Sample.envelope(next), isVolatile: false, at: Sample.now) {
                case .give: given.append(next)
                case .later(let load): want(load)
                }
                next += 1
            case 1:
                stored.append(next)
                want(window.storedMore(at: Sample.now))
                next += 1
            case 2:
                guard let load = pending else { continue }
                pending = nil
                let (envelopes, isComplete) = read(load)
                let loaded = window.loaded(envelopes, isComplete: isComplete, at: Sample.now)
                given += loaded.give.map(\.position)
                want(loaded.load)
            default:
                guard let first = given.first(where: { !acknowledged.contains($0) }) else { continue }
                acknowledged.insert(first)
                want(window.settled(Sample.id(first)))
            }
        }
        #expect(given == stored)
    }
}

struct LinearGenerator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ (state >> 33)
    }
}
