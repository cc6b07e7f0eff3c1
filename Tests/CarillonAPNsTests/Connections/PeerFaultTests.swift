import NIOCore
import NIOHPACK
import Testing

@testable import CarillonAPNs

/// The reactions of the connection's machine to a peer that breaks rules: it loses as few pushes as possible.
struct PeerFaultTests {
    typealias Rig = ConnectionMachineTests.Rig

    static func at(_ seconds: Int) -> Moment { ConnectionMachineTests.start + .seconds(seconds) }
    static let push = ConnectionMachineTests.push

    @Test func `a GOAWAY before any answer is why the connection ended`() {
        var rig = Rig(settings: [(3, 100)])
        rig.goAway(last: 0, text: #"{"reason":"BadCertificate"}"#)
        guard case .ended(let fault)? = rig.events().last else {
            Issue.record("it goes on")
            return
        }
        #expect(fault.kind == .goneAway)
        #expect(fault.detail.contains("BadCertificate"))
    }

    @Test func `a refusal after the status does not change the result`() {
        var rig = Rig.proven()
        let ids = rig.send(1)
        rig.answer(ids[0], endsStream: false)
        rig.reset(ids[0], .refusedStream)
        guard case .answered(Self.push(1), let answer)? = rig.events().first else {
            Issue.record("not answered")
            return
        }
        #expect(answer.status == 200)
    }

    @Test func `a rule broken on one stream ends that stream alone`() {
        var rig = Rig.proven(settings: [(4, 4)])
        let ids = rig.send(4)
        rig.window(ids[0], 0)
        rig.feed(.data, stream: ids[1], payload: ByteBuffer(string: "{}"))
        var block = ByteBuffer()
        rig.encode([":status": "103"], into: &block)
        rig.feed(.headers, [.endHeaders, .endStream], stream: ids[2], payload: block)
        let lost = rig.events().compactMap { event -> PushID? in
            guard case .lost(let push, let mayHaveBeenProcessed, _) = event, !mayHaveBeenProcessed else { return nil }
            return push
        }
        #expect(lost == (1...3).map { Self.push($0) })
        #expect(rig.frames(.resetStream).count == 3)
        rig.window(ids[3], 100)
        rig.window(ids[3], 0x7FFF_FFFF)
        #expect(rig.frames(.resetStream).count == 4)
        guard case .lost(Self.push(4), true, _)? = rig.events().first else {
            Issue.record("not lost")
            return
        }
        #expect(rig.machine.phase == .open)
    }

    /// A frame that no peer may send, and why.
    static let forbidden:
        [(kind: APNsFrameHead.Kind, flags: APNsFrameHead.Flags, stream: UInt32, payload: [UInt8], words: String)] =
            [
                (.settings, .acknowledgement, 0, [0, 3, 0, 0, 0, 1], "6 bytes"),
                (.settings, [], 0, [0, 2, 0, 0, 0, 1], "push"), (.settings, [], 0, [0, 2, 0, 0, 0, 7], "push"),
                (.settings, [], 0, [0, 2, 0, 0, 0], "5 bytes"), (.settings, [], 1, [], "stream"),
                (.priority, [], 1, [0, 0, 0, 1, 9], "itself"), (.priority, [], 7, [0x80, 0, 0, 7, 9], "itself"),
                (.priority, [], 0, [0, 0, 0, 1, 9], "connection"), (.priority, [], 1, [0, 0, 0, 3], "4 bytes"),
                (.headers, [.priority, .endHeaders], 1, [0x80, 0, 0, 1, 9, 0x88], "itself"),
                (.headers, [.priority, .endHeaders], 1, [0, 0, 0, 3], "short"),
                (.pushPromise, .endHeaders, 1, [0, 0, 0, 2, 0x88], "push"),
                (.continuation, .endHeaders, 1, [0x88], "without"),
                (.ping, [], 0, [1, 2, 3], "PING"), (.resetStream, [], 1, [0, 0, 0], "3 bytes"),
                (.resetStream, [], 9, [0, 0, 0, 8], "never opened"), (.windowUpdate, [], 0, [0, 0, 0, 0], "nothing"),
                (.data, .padded, 1, [9, 1], "padding"),
            ]

    @Test(arguments: forbidden.indices) func `a frame that nobody may send ends the connection`(index: Int) {
        let (kind, flags, stream, payload, words) = Self.forbidden[index]
        var rig = Rig.proven()
        rig.send(1)
        rig.take()
        rig.feed(kind, flags, stream: stream, payload: ByteBuffer(bytes: payload))
        guard case .ended(let fault)? = rig.events().last else {
            Issue.record("it goes on")
            return
        }
        #expect(fault.kind == .protocolViolated)
        #expect(fault.detail.contains(words), "\(fault.detail)")
        #expect(rig.frames(.goAway).count == 1)
    }

    @Test func `frames other than settings and answers are ignored`() {
        var rig = Rig.proven()
        rig.settings([(2, 0), (8, 1), (0xFFFF, 7)])
        rig.feed(.priority, stream: 1, payload: ByteBuffer(bytes: [0, 0, 0, 3, 9]))
        rig.feed(.settings, .acknowledgement)
        let id = rig.send(1)[0]
        var block = ByteBuffer(bytes: [0, 0, 0, 9, 9])
        var head = ByteBuffer()
        rig.encode([":status": "200"], into: &head)
        block.writeBuffer(&head)
        rig.feed(.headers, [.priority, .endHeaders, .endStream], stream: id, payload: block)
        #expect(rig.events() == [.answered(Self.push(1), RawAnswer(status: 200))])
        #expect(rig.machine.phase == .open)
    }

    @Test(arguments: [
        [("apns-id", "x"), (":status", "200")], [(":status", "200"), (":status", "200")],
        [(":status", "200"), ("Thread-Id", "x")], [(":status", "200"), ("X", "y")], [(":status", "200"), (":path", "/")],
        [(":status", "20")], [(":status", "2000")], [(":status", "+20")], [(":status", "099")], [("apns-id", "x")], [],
    ])
    func `a malformed head ends that stream alone, and the result of its push is unknown`(head: [(String, String)]) {
        var rig = Rig.proven()
        let ids = rig.send(2)
        var block = ByteBuffer()
        rig.encode(HPACKHeaders(head), into: &block)
        rig.feed(.headers, [.endHeaders, .endStream], stream: ids[0], payload: block)
        guard case .lost(Self.push(1), true, _)? = rig.events().first else {
            Issue.record("it is taken for an answer")
            return
        }
        #expect(rig.frames(.resetStream).count == 1)
        rig.answer(ids[1])
        #expect(rig.events() == [.answered(Self.push(2), Rig.accepted)])
    }

    @Test func `settings that let a window overflow end the connection`() {
        var rig = Rig.proven()
        let ids = rig.send(1)
        rig.window(ids[0], 0x7FFF_0000)
        rig.settings([(4, 0x7FFF_FFFF)])
        #expect(rig.machine.phase == .ended)
    }

    @Test func `a connection that stays without stream capacity is abandoned`() {
        var rig = Rig.proven(settings: [(4, 70_000)])
        let ids = rig.send(1, bytes: 65_535)
        rig.answer(ids[0])
        #expect(rig.machine.freeStreams == 0)
        rig.machine.timePassed(Self.at(1))
        rig.machine.timePassed(Self.at(9))
        #expect(rig.machine.phase == .open)
        rig.machine.timePassed(Self.at(12))
        #expect(rig.machine.phase == .ended)
    }

    @Test func `a connection that found room again is kept`() {
        var rig = Rig.proven(settings: [(3, 0)])
        rig.machine.timePassed(Self.at(1))
        rig.settings([(3, 10)])
        rig.machine.timePassed(Self.at(20))
        #expect(rig.machine.phase == .open)
        #expect(rig.machine.freeStreams == 10)
    }

    @Test func `idle time before a push does not count as a timeout`() {
        var rig = Rig.proven()
        rig.machine.timePassed(Self.at(60))
        rig.send(1)
        rig.machine.timePassed(Self.at(61))
        rig.machine.timePassed(Self.at(65))
        #expect(rig.frames(.ping).isEmpty)
        rig.machine.timePassed(Self.at(67))
        #expect(rig.frames(.ping).count == 1)
    }

    @Test func `the result of a push whose end was not read is unknown`() {
        var rig = Rig.proven()
        let ids = rig.send(1)
        rig.machine.closed("gone")
        let mayHaveBeenProcessed = rig.machine.timedOut(ids[0])
        #expect(mayHaveBeenProcessed == .unanswered(mayHaveBeenProcessed: true))
    }

    @Test func `a stream's window writes that stream, and the connection's the oldest first`() {
        var rig = Rig.proven(settings: [(4, 5)])
        let ids = rig.send(3)
        rig.window(ids[2], 100)
        #expect(rig.frames(.data).map(\.head.stream) == ids + [ids[2]])
        #expect(rig.machine.blocked == [ids[0], ids[1]])
    }
}
