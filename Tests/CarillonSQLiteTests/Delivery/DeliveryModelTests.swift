import CarillonCore
import CarillonWire
import StoreConformance
import TestStores
import TestSupport
import Testing

@testable import CarillonSQLite

/// A publisher, an inbox, two connections of one device, and a store whose process is killed sometimes: in every order of events,
/// the guarantees are kept.
@Suite(.timeLimit(.minutes(5)))
struct DeliveryModelTests {
    @Test(arguments: RandomSeed.some(25))
    func `nothing accepted is lost, nothing final comes back, and every outcome is true`(seed: UInt64) async throws {
        var model = try await DeliveryModel(seed: seed)
        var turns = ScenarioTurns(250)
        while turns.next(unless: model.acceptedCount > 30 && model.acknowledgedCount > 10) { try await model.step() }
        try await model.windDown()
        #expect(model.faults.isEmpty, "seed \(seed): \(model.faults.prefix(3))")
        #expect(model.acceptedCount > 30, "seed \(seed) accepted too little to mean anything")
        #expect(model.acknowledgedCount > 10, "seed \(seed) acknowledged too little to mean anything")
    }
}

private struct DeliveryModel {
    private struct Sent {
        var receipt: PublishReceipt
        var topic: String?
        var expiresAt: Timestamp
        /// Its sender was informed that it will not be delivered any more.
        var isOver = false
        /// The same, by a message that was acknowledged before it was on disk: a kill may take that back.
        var mayBeOver = false
        /// The device acknowledged it, and that is on disk.
        var isAcknowledged = false
        /// The same, perhaps not on disk yet.
        var wasAcknowledged = false
        /// The process was killed after it: if it was dropped, its row may be on disk and the removal of the row may not.
        var mayHaveRow = false
        var wasGivenSinceStart = false
    }

    private(set) var faults: [String] = []
    private var generator: SeededRandom
    private let fixture: StoreFixture
    private let clock = ManualClock()
    private var world: DeliveryWorld
    private var session: WindowedSession?
    private var sent: [MessageID: Sent] = [:]
    private var order: [MessageID] = []
    private var given: [MessageID] = []

    var acceptedCount: Int { sent.count }
    var acknowledgedCount: Int { sent.values.count { $0.isAcknowledged } }

    init(seed: UInt64) async throws {
        generator = SeededRandom(seed: seed)
        fixture = try await StoreFixture(.memory, .init(envelopes: 40))
        world = try await DeliveryWorld(fixture, clock: clock, seed: seed)
    }

    mutating func step() async throws {
        switch Int.random(in: 0...15, using: &generator) {
        case 0...3: try await publish()
        case 4: try await publishAndAcknowledgeEarly()
        case 5, 6: try await session?.load()
        case 7...9: acknowledge()
        case 10: try await cancel()
        case 11: connect()
        case 12: session?.disconnect(); session = nil
        case 13: clock.advance(seconds: Int64.random(in: 0...4, using: &generator))
        case 14: try await settleDown()
        default: try await Int.random(in: 0...3, using: &generator) == 0 ? crash() : sweep()
        }
        receive()
    }

    // MARK: The sender

    private mutating func publish() async throws {
        let ttl = Int64.random(in: 0...9, using: &generator) == 0 ? 0 : Int64.random(in: 1...30, using: &generator)
        let topic = [nil, nil, "a", "b"].randomElement(using: &generator) ?? nil
        let world = world
        let ticking = keepTimersRunning()
        defer { ticking.cancel() }
        do {
            note(try await world.publish(world.request(ttl: ttl, topic: topic)), ttl: ttl, topic: topic)
        } catch let refusal as Refusal where refusal.code == .inboxFull {
        }
    }

    /// The device speaks before the write is done.
    private mutating func publishAndAcknowledgeEarly() async throws {
        guard let session, session.isOpen else { return }
        try await session.load()
        receive()
        let world = world
        let device = fixture.device.serial
        let topic = [nil, "a"].randomElement(using: &generator) ?? nil
        async let publishing = world.publish(world.request(ttl: 20, topic: topic, body: "early"))
        var acknowledged: [Envelope] = []
        for _ in 0..<50 where acknowledged.isEmpty {
            await Task.yield()
            acknowledged = session.takeGiven()
        }
        for envelope in acknowledged {
            world.inbox.finish(envelope.id, device: device, .acknowledged, code: nil)
            session.finished([envelope.id])
        }
        let ticking = keepTimersRunning()
        defer { ticking.cancel() }
        let receipt: PublishReceipt
        do {
            receipt = try await publishing
        } catch let refusal as Refusal where refusal.code == .inboxFull {
            return
        }
        note(receipt, ttl: 20, topic: topic)
        for envelope in acknowledged {
            check(envelope)
            sent[envelope.id]?.wasAcknowledged = true
        }
    }

    /// Until it is cancelled.
    private func keepTimersRunning() -> Task<Void, Never> {
        let timers = world.timers
        return Task {
            while !Task.isCancelled {
                timers.fire()
                await Task.yield()
            }
        }
    }

    private mutating func note(_ receipt: PublishReceipt, ttl: Int64, topic: String?) {
        sent[receipt.id] = Sent(receipt: receipt, topic: topic, expiresAt: clock.now.adding(seconds: ttl))
        order.append(receipt.id)
        if receipt.outcome == .dropped { sent[receipt.id]?.isOver = true }
        guard let topic else { return }
        let isCertain = receipt.outcome == nil && receipt.ttl > 0
        for (id, other) in sent where other.topic == topic && id.position < receipt.id.position {
            if isCertain { sent[id]?.isOver = true } else { sent[id]?.mayBeOver = true }
        }
    }

    private mutating func cancel() async throws {
        guard let id = order.randomElement(using: &generator) else { return }
        if try await world.inbox.cancel(id) {
            if sent[id]?.isAcknowledged == true { faults.append("\(id.position) was cancelled after it was acknowledged") }
            sent[id]?.isOver = true
        }
    }

    // MARK: The device

    private mutating func connect() {
        let limits = DeliveryMachine.Limits(envelopes: 6, bytes: 4000)
        let session = WindowedSession(device: fixture.device.serial, inbox: world.inbox, clock: clock, limits: limits)
        world.sessions.join(session, device: fixture.device.serial)
        self.session = session
        given = []
        for id in order { sent[id]?.wasGivenSinceStart = false }
    }

    private mutating func receive() {
        for envelope in session?.takeGiven() ?? [] { check(envelope) }
    }

    private mutating func check(_ envelope: Envelope) {
        let id = envelope.id
        if !envelope.isVolatile, envelope.isExpired(at: clock.now) { faults.append("\(id.position) came late") }
        if let sent = sent[id] {
            if sent.isOver { faults.append("\(id.position) came after it was over") }
            if sent.isAcknowledged { faults.append("\(id.position) came after its acknowledgement was on disk") }
            if sent.wasGivenSinceStart { faults.append("\(id.position) came twice to one connection") }
        }
        if let last = given.last, last.position > id.position { faults.append("\(id.position) came after \(last.position)") }
        sent[id]?.wasGivenSinceStart = true
        given.append(id)
    }

    private mutating func acknowledge() {
        guard let session, let id = given.first(where: { sent[$0]?.wasAcknowledged != true }), sent[id] != nil else {
            return
        }
        world.inbox.finish(id, device: session.device, .acknowledged, code: nil)
        session.finished([id])
        sent[id]?.wasAcknowledged = true
    }

    // MARK: The server

    /// All queued operations reach the disk; the device's report is then final.
    private mutating func settleDown() async throws {
        await world.writer.flush()
        for id in order where sent[id]?.wasAcknowledged == true && sent[id]?.isAcknowledged == false {
            let outcome = try await world.outcome(id)
            if outcome == .acknowledged { sent[id]?.isAcknowledged = true }
        }
    }

    private mutating func sweep() async throws {
        let swept = try await fixture.store.sweep(at: clock.now, limit: 20)
        for expired in swept.expired {
            world.sessions.session(of: expired.device)?.withdrew(.envelope(expired.position)) {}
        }
    }

    /// The process is killed: operations that were queued and not committed are lost.
    private mutating func crash() async throws {
        world.store.kill()
        session = nil
        world = try await DeliveryWorld(fixture, clock: clock, seed: generator.next())
        for id in order {
            // An acknowledgement that was not on disk may be lost.
            if sent[id]?.isAcknowledged == false { sent[id]?.wasAcknowledged = false }
            sent[id]?.mayHaveRow = true
        }
        connect()
    }

    // MARK: The end

    /// The device acknowledges all waiting envelopes; after that each message has its required outcome.
    mutating func windDown() async throws {
        try await settleDown()
        session?.disconnect()
        connect()
        for _ in 0..<200 {
            try await session?.load()
            receive()
            acknowledge()
        }
        try await settleDown()
        for id in order {
            guard let sent = sent[id] else { continue }
            let record = try await world.inbox.record(of: id)
            let outcome = record?.finalOutcome?.outcome
            switch sent.receipt.outcome {
            case nil where sent.receipt.ttl > 0:
                if record == nil { faults.append("\(id.position) was accepted and is unknown") }
                if outcome == nil { faults.append("\(id.position) was never given, and waits for ever") }
                if sent.isAcknowledged, outcome != .acknowledged {
                    faults.append("\(id.position) ended as \(outcome as Any)")
                }
                if outcome == .expired, sent.expiresAt > clock.now { faults.append("\(id.position) expired early") }
                if outcome == .replaced || outcome == .cancelled, !sent.isOver, !sent.mayBeOver {
                    faults.append("\(id.position) is \(outcome as Any), and nobody did it")
                }
            case .dropped?:
                // A sweep may have run first, in which its time had ended.
                if record != nil, outcome != .dropped, outcome != nil || !sent.mayHaveRow {
                    faults.append("\(id.position) was dropped and left a row")
                }
            default: break
            }
        }
        clock.advance(seconds: Envelope.volatileGraceSeconds)
        for id in order where sent[id]?.receipt.outcome == .dropped {
            guard let record = try await world.inbox.record(of: id) else { continue }
            let outcome = record.finalOutcome?.outcome
            if outcome != .dropped { faults.append("\(id.position) was dropped and ended as \(outcome as Any)") }
        }
        faults += try await SQLiteStores.memory.wrongCounters(in: fixture.store)
    }
}
