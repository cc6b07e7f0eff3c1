import NIOCore
import NIOHPACK
import Testing

@testable import CarillonAPNs

/// A push whose status was read is answered, despite all later events.
struct AcceptedTests {
    typealias Rig = ConnectionMachineTests.Rig

    /// The events of a stream after its status.
    enum Aftermath: CaseIterable, Sendable {
        case refused, calmed, cancelled, internalError, goAwayBefore, socketClosed, protocolFault, silence, paused
        case malformedTrailers, headersWithoutEnd, windowByNothing, windowTooFar, endlessBody, end

        func happen(_ rig: inout Rig, _ id: UInt32) {
            switch self {
            case .refused: rig.reset(id, .refusedStream)
            case .calmed: rig.reset(id, .enhanceYourCalm)
            case .cancelled: rig.reset(id, .cancel)
            case .internalError: rig.reset(id, HTTP2Code(rawValue: 2))
            case .goAwayBefore: rig.goAway(last: 0)
            case .socketClosed: rig.machine.closed("gone")
            case .protocolFault: rig.feed(.pushPromise, stream: id)
            case .silence:
                for seconds in [0, 6, 12] { rig.machine.timePassed(ConnectionMachineTests.start + .seconds(seconds)) }
            case .paused:
                rig.machine.outputPaused(ConnectionMachineTests.start)
                rig.machine.timePassed(ConnectionMachineTests.start + .seconds(11))
            case .malformedTrailers:
                var block = ByteBuffer()
                rig.encode([":status": "500"], into: &block)
                rig.feed(.headers, [.endHeaders, .endStream], stream: id, payload: block)
            case .headersWithoutEnd: rig.answer(id, 500, endsStream: false)
            case .windowByNothing: rig.window(id, 0)
            case .windowTooFar: for _ in 0..<2 { rig.window(id, 0x7FFF_FFFF) }
            case .endlessBody:
                for _ in 0..<3 { rig.feed(.data, stream: id, payload: ByteBuffer(repeating: 1, count: 10_000)) }
            case .end: rig.feed(.data, .endStream, stream: id)
            }
        }
    }

    @Test(arguments: Aftermath.allCases, [true, false])
    func `data after the status does not change the result`(_ aftermath: Aftermath, isWhole: Bool) {
        // A window of nothing keeps the body from leaving.
        var rig = Rig.proven(settings: isWhole ? [] : [(4, 0)])
        let id = rig.send(1)[0]
        rig.answer(id, endsStream: false)
        aftermath.happen(&rig, id)
        let said = rig.events().compactMap { event -> Int? in
            switch event {
            case .answered(ConnectionMachineTests.push(1), let answer): answer.status
            case .answered, .returned, .lost: -1
            case .opened, .draining, .ended: nil
            }
        }
        #expect(said == [200])
        #expect(rig.machine.streams.isEmpty)
    }

    @Test(arguments: [[(":status", "500")], [("Name", "x")]])
    func `trailers that are none are reset`(trailers: [(String, String)]) {
        for endsStream in [true, false] {
            var rig = Rig.proven()
            let id = rig.send(1)[0]
            rig.answer(id, endsStream: false)
            var block = ByteBuffer()
            rig.encode(HPACKHeaders(trailers), into: &block)
            rig.feed(.headers, endsStream ? [.endHeaders, .endStream] : .endHeaders, stream: id, payload: block)
            #expect(rig.frames(.resetStream).map(\.payload) == [ByteBuffer(integer: HTTP2Code.protocolError.rawValue)])
        }
        var rig = Rig.proven()
        let id = rig.send(1)[0]
        rig.answer(id, endsStream: false)
        var block = ByteBuffer()
        rig.encode(["name": "x"], into: &block)
        rig.feed(.headers, [.endHeaders, .endStream], stream: id, payload: block)
        #expect(rig.frames(.resetStream).isEmpty)
        #expect(rig.events() == [.answered(ConnectionMachineTests.push(1), Rig.accepted)])
    }

    @Test(arguments: [true, false]) func `a push that is abandoned after its status is answered`(byTime: Bool) {
        var rig = Rig(settings: [(3, 100)])
        let id = rig.send(1)[0]
        rig.answer(id, endsStream: false)
        let end = byTime ? rig.machine.timedOut(id) : rig.machine.cancelled(id)
        #expect(end == .answered(Rig.accepted))
        #expect(rig.events().isEmpty)
        #expect(rig.frames(.resetStream).count == 1)
        // The acceptance proves the connection as any other does.
        #expect(rig.machine.freeStreams == 100)
    }

    @Test func `an acceptance whose stream was reset proves the connection`() {
        var rig = Rig(settings: [(3, 100)])
        let id = rig.send(1)[0]
        rig.answer(id, endsStream: false)
        rig.reset(id, .noError)
        #expect(rig.machine.freeStreams == 100)
    }

    @Test func `incomplete responses count as activity`() {
        var rig = Rig.proven()
        for _ in 0..<5 {
            let id = rig.send(1)[0]
            rig.answer(id, endsStream: false)
            _ = rig.machine.timedOut(id)
        }
        #expect(rig.machine.phase == .open)
    }

    @Test func `a push that is abandoned before its status reports what is known`() {
        var rig = Rig.proven(settings: [(4, 10)])
        let whole = rig.send(1, bytes: 10)[0]
        let partial = rig.send(1, bytes: 11)[0]
        #expect(rig.machine.cancelled(whole) == .unanswered(mayHaveBeenProcessed: true))
        #expect(rig.machine.timedOut(partial) == .unanswered(mayHaveBeenProcessed: false))
    }
}
