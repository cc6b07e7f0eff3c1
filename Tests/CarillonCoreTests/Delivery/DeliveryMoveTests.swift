import CarillonCore
import CarillonWire
import Testing

/// The delivery of envelopes while their device moves to another home.
struct DeliveryMoveTests {
    private typealias Action = DeliveryMachine.Action

    private let limits = DeliveryMachine.Limits(envelopes: 8, bytes: 10_000, outputBytes: 5000)

    private func page(_ positions: Int64...) -> InboxRead {
        .page(InboxPage(envelopes: positions.map { Sample.envelope($0) }, isComplete: true))
    }

    private func load(after position: Int64, limit: Int = 8, bytes: Int = 5000) -> Action {
        .load(PageRequest(after: position, limit: limit, bytes: bytes))
    }

    private func live() -> DeliveryMachine {
        var machine = DeliveryMachine(limits: limits)
        _ = machine.began()
        _ = machine.loaded(page(), at: Sample.now)
        return machine
    }

    @Test func `a page that arrives during a move is not delivered, and is read again after the move`() {
        var machine = DeliveryMachine(limits: limits)
        _ = machine.began()
        machine.moving()
        #expect(machine.loaded(page(1), at: Sample.now) == [])
        #expect(machine.moved(at: Sample.now) == [load(after: 0)])
        #expect(machine.loaded(page(1), at: Sample.now) == [.deliver(Sample.envelope(1)), .caughtUp])
    }

    @Test func `a page that was requested before a move and arrives after it is not delivered`() {
        var machine = DeliveryMachine(limits: limits)
        _ = machine.began()
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
        // The sender withdrew the envelope at the new home, before the connection was a session there.
        #expect(machine.loaded(page(1), at: Sample.now) == [load(after: 0)])
        #expect(machine.loaded(page(), at: Sample.now) == [.caughtUp])
    }

    @Test func `offers during a move wait, and are loaded after the move`() {
        var machine = live()
        machine.moving()
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == [])
        #expect(
            machine.offered(Sample.envelope(2, ttl: 0), isVolatile: true, at: Sample.now) == [
                .answerOffer(wasAccepted: false)
            ])
        #expect(machine.storedMore(at: Sample.now) == [])
        #expect(machine.moved(at: Sample.now) == [load(after: 0)])
        #expect(machine.loaded(page(1), at: Sample.now) == [.deliver(Sample.envelope(1))])
        #expect(machine.offered(Sample.envelope(3), isVolatile: false, at: Sample.now) == [.deliver(Sample.envelope(3))])
    }

    @Test func `an answer during a move makes room, and nothing is loaded`() {
        var machine = live()
        for position in Int64(1)...9 { _ = machine.offered(Sample.envelope(position), isVolatile: false, at: Sample.now) }
        machine.moving()
        for position in Int64(1)...8 { #expect(machine.finished(Sample.id(position)) == []) }
        #expect(machine.moved(at: Sample.now) == [load(after: 8)])
    }

    @Test func `at the new home the window does not wait for answers to earlier deliveries`() {
        var machine = live()
        for position in Int64(1)...7 { _ = machine.offered(Sample.envelope(position), isVolatile: false, at: Sample.now) }
        _ = machine.offered(Sample.envelope(8, ttl: 0), isVolatile: true, at: Sample.now)
        machine.moving()
        #expect(machine.arrivedAgain(at: Sample.now) == [load(after: 8, limit: 7)])
        #expect(machine.loaded(page(9), at: Sample.now) == [.deliver(Sample.envelope(9))])
        // An answer that arrives by this connection.
        #expect(machine.finished(Sample.id(1)) == [])
        #expect(machine.disconnected() == [.finish(Sample.id(8), .dropped)])
    }

    @Test(arguments: [true, false])
    func `a connection whose output is paused during a move loads when both are over`(isPausedFirst: Bool) {
        var machine = live()
        if isPausedFirst {
            machine.outputPaused()
            machine.moving()
            #expect(machine.moved(at: Sample.now) == [])
            #expect(machine.outputResumed(at: Sample.now) == [load(after: 0)])
        } else {
            machine.moving()
            machine.outputPaused()
            #expect(machine.outputResumed(at: Sample.now) == [])
            #expect(machine.moved(at: Sample.now) == [load(after: 0)])
        }
    }

    @Test func `a second move that begins before the end of the first one is known delays everything further`() {
        var machine = live()
        machine.moving()
        machine.moving()
        #expect(machine.moved(at: Sample.now) == [])
        #expect(machine.offered(Sample.envelope(1), isVolatile: false, at: Sample.now) == [])
        #expect(machine.moved(at: Sample.now) == [load(after: 0)])
    }

    @Test func `a connection that missed the end of a move loads`() {
        var machine = live()
        #expect(machine.moved(at: Sample.now) == [load(after: 0)])
        #expect(machine.loaded(page(1), at: Sample.now) == [.deliver(Sample.envelope(1))])
    }

    @Test func `envelopes that are not written are taken back, and loaded after the move`() {
        var machine = live()
        for position in Int64(1)...3 { _ = machine.offered(Sample.envelope(position), isVolatile: false, at: Sample.now) }
        _ = machine.offered(Sample.envelope(4, ttl: 0), isVolatile: true, at: Sample.now)
        machine.moving()
        let taken = machine.takeBack(after: 1)
        #expect(taken.envelopes == [2, 3, 4].map { Sample.id($0) })
        #expect(taken.actions == [.finish(Sample.id(4), .dropped)])
        #expect(machine.holds(Sample.id(1)) && !machine.holds(Sample.id(2)) && machine.unacknowledgedCount == 1)
        #expect(machine.moved(at: Sample.now) == [load(after: 1, limit: 7)])
        #expect(machine.loaded(page(3), at: Sample.now) == [.deliver(Sample.envelope(3))])
    }

    @Test func `if everything is written, nothing is taken back`() {
        var machine = live()
        for position in Int64(1)...2 { _ = machine.offered(Sample.envelope(position), isVolatile: false, at: Sample.now) }
        let taken = machine.takeBack(after: 2)
        #expect(taken.envelopes.isEmpty && taken.actions.isEmpty)
        #expect(machine.storedMore(at: Sample.now) == [load(after: 2, limit: 6)])
    }
}
