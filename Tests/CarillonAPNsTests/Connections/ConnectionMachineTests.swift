import NIOCore
import NIOHPACK
import TestSupport
import Testing

@testable import CarillonAPNs

/// The connection's machine, without a socket: frames in, frames and events out.
struct ConnectionMachineTests {
    static let start = Moment(nanoseconds: 0)
    static let head = APNsRequestHead(fields: [HeaderField(.apnsTopic, "com.example.app")])

    /// A machine whose peer has sent its settings, and the decoded frames that it wrote.
    struct Rig {
        var machine: ConnectionMachine
        var written: [(head: APNsFrameHead, payload: ByteBuffer)] = []
        var nextPush: UInt32 = 0
        private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())

        init(settings: [(UInt16, UInt32)] = [], open: Bool = true, _ options: ConnectionMachine.Options = .init()) {
            machine = ConnectionMachine(options: options, now: ConnectionMachineTests.start)
            guard open else { return }
            feed(.settings, payload: Rig.bytes(of: settings))
            take()
            written = []
            _ = machine.takeEvents()
        }

        static func proven(
            settings: [(UInt16, UInt32)] = [], _ options: ConnectionMachine.Options = .init()
        ) -> Rig {
            var options = options
            options.startsWithOneStream = false
            return Rig(settings: settings, options)
        }

        static func bytes(of settings: [(UInt16, UInt32)]) -> ByteBuffer {
            var payload = ByteBuffer()
            for (name, value) in settings { payload.writeMultipleIntegers(name, value) }
            return payload
        }

        mutating func feed(
            _ kind: APNsFrameHead.Kind, _ flags: APNsFrameHead.Flags = [], stream: UInt32 = 0,
            payload: ByteBuffer = ByteBuffer(),
            at now: Moment = ConnectionMachineTests.start
        ) {
            var bytes = ByteBuffer()
            APNsFrameHead(length: payload.readableBytes, kind: kind, flags: flags, stream: stream).write(into: &bytes)
            bytes.writeImmutableBuffer(payload)
            machine.received(&bytes, now: now)
        }

        mutating func settings(_ settings: [(UInt16, UInt32)]) { feed(.settings, payload: Rig.bytes(of: settings)) }

        /// The answer to a push that the service accepted.
        static let accepted: RawAnswer = {
            var answer = RawAnswer(status: 200)
            answer.id = "x"
            return answer
        }()

        /// Answers as the service does: with an ID if the status is one of success.
        mutating func answer(
            _ stream: UInt32, _ status: Int = 200, endsStream: Bool = true, hasID: Bool = true, at now: Moment = start
        ) {
            var block = ByteBuffer()
            var headers: HPACKHeaders = [":status": String(status)]
            if hasID, (200...299).contains(status) { headers.add(name: "apns-id", value: "x") }
            encode(headers, into: &block)
            feed(.headers, endsStream ? [.endHeaders, .endStream] : .endHeaders, stream: stream, payload: block, at: now)
        }

        mutating func reject(_ stream: UInt32, _ status: Int, _ reason: APNsReason) {
            answer(stream, status, endsStream: false)
            feed(.data, .endStream, stream: stream, payload: ByteBuffer(string: "{\"reason\":\"\(reason)\"}"))
        }

        mutating func encode(_ headers: HPACKHeaders, into block: inout ByteBuffer) {
            do { try encoder.encode(headers: headers, to: &block) } catch { Issue.record(error) }
        }

        mutating func goAway(last: UInt32, text: String = "") {
            var payload = ByteBuffer()
            payload.writeMultipleIntegers(last, 0 as UInt32)
            payload.writeString(text)
            feed(.goAway, payload: payload)
        }

        mutating func reset(_ stream: UInt32, _ code: HTTP2Code) {
            feed(.resetStream, stream: stream, payload: ByteBuffer(integer: code.rawValue))
        }

        mutating func window(_ stream: UInt32, _ bytes: UInt32) {
            feed(.windowUpdate, stream: stream, payload: ByteBuffer(integer: bytes))
        }

        /// Adds as many pushes as the machine accepts, at most the given number.
        @discardableResult
        mutating func send(_ count: Int, bytes: Int = 10) -> [UInt32] {
            var ids: [UInt32] = []
            while ids.count < count, machine.freeStreams > 0 {
                nextPush += 1
                ids.append(
                    machine.send(
                        PushID(slot: nextPush, generation: 0), ConnectionMachineTests.head, nil, path: "/3/device/ab",
                        body: RequestBody([UInt8](repeating: 0x78, count: bytes))))
            }
            return ids
        }

        mutating func take() {
            guard var output = machine.takeOutput() else { return }
            if output.readableBytesView.starts(with: "PRI".utf8) { output.moveReaderIndex(forwardBy: 24) }
            while let head = APNsFrameHead(peekingAt: output) {
                output.moveReaderIndex(forwardBy: 9)
                guard let payload = output.readSlice(length: head.length) else { break }
                written.append((head, payload))
            }
        }

        mutating func frames(_ kind: APNsFrameHead.Kind) -> [(head: APNsFrameHead, payload: ByteBuffer)] {
            take()
            return written.filter { $0.head.kind == kind }
        }

        mutating func events() -> [ConnectionMachine.Event] { machine.takeEvents() }
    }

    static func push(_ number: UInt32) -> PushID { PushID(slot: number, generation: 0) }

    @Test func `the preface is sent first, and no push is accepted before the peer's settings`() {
        var rig = Rig(open: false)
        #expect(rig.machine.freeStreams == 0)
        #expect(rig.machine.output.readableBytesView.starts(with: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        #expect(rig.frames(.settings).count == 1)
        rig.settings([(3, 100)])
        #expect(rig.events() == [.opened])
        #expect(rig.frames(.settings).last?.head.flags == .acknowledgement)
        #expect(rig.machine.freeStreams == 1)
    }

    @Test func `one stream until the first acceptance, then as many as the peer allows`() {
        var rig = Rig(settings: [(3, 100)])
        #expect(rig.send(500) == [1])
        rig.answer(1, 400)
        #expect(rig.machine.freeStreams == 1)
        #expect(rig.send(500) == [3])
        rig.answer(3)
        #expect(rig.send(500).count == 100)
        #expect(rig.machine.freeStreams == 0)
    }

    @Test func `a lowered or raised limit applies at once`() {
        var rig = Rig.proven(settings: [(3, 10)])
        let ids = rig.send(10)
        rig.settings([(3, 1)])
        for id in ids.dropLast() {
            rig.answer(id)
            #expect(rig.machine.freeStreams == 0)
        }
        rig.answer(ids[9])
        #expect(rig.machine.freeStreams == 1)
        rig.settings([(3, 0)])
        #expect(rig.machine.freeStreams == 0)
        rig.settings([(3, 1000)])
        #expect(rig.machine.freeStreams == 1000)
    }

    @Test func `a refused stream is returned, and the connection slows down and recovers`() {
        var rig = Rig.proven(settings: [(3, 100)])
        let ids = rig.send(100)
        for id in ids { rig.reset(id, .refusedStream) }
        #expect(rig.events() == (1...100).map { .returned(Self.push($0), isRefused: true) })
        let slow = rig.machine.freeStreams
        #expect(slow < 10)
        #expect(slow >= 1)
        for _ in 0..<20 { for id in rig.send(100) { rig.answer(id) } }
        #expect(rig.machine.freeStreams == 100)
    }

    @Test func `a service that returns ENHANCE_YOUR_CALM may have processed the push, and gets fewer pushes`() {
        var rig = Rig.proven(settings: [(3, 100)])
        let ids = rig.send(100)
        rig.reset(ids[0], .enhanceYourCalm)
        guard case .lost(Self.push(1), true, _)? = rig.events().first else {
            Issue.record("it is taken for unprocessed")
            return
        }
        for id in ids.dropFirst() { rig.answer(id) }
        #expect(rig.machine.ownLimit < 300)
    }

    @Test func `a service in trouble is sent fewer at once, and more again as it accepts`() {
        var rig = Rig.proven()
        let ids = rig.send(1000)
        for id in ids.prefix(3) { rig.answer(id, 503) }
        #expect(rig.machine.ownLimit <= 500)
        rig.answer(ids[3], 429)
        let slow = rig.machine.ownLimit
        for id in ids.dropFirst(4).prefix(50) { rig.answer(id) }
        #expect(rig.machine.ownLimit == slow + 50)
        for id in ids.dropFirst(54) { rig.answer(id, 500) }
        #expect(rig.machine.ownLimit == 1)
        #expect(rig.machine.freeStreams == 1)
    }

    @Test func `GOAWAY returns the pushes above its last stream, and waits for the others`() {
        var rig = Rig.proven()
        rig.send(4)
        rig.goAway(last: 3, text: #"{"reason":"Shutdown"}"#)
        let events = rig.events()
        guard case .draining(let fault, let reason)? = events.first else {
            Issue.record("\(events)")
            return
        }
        #expect(fault.kind == .goneAway)
        #expect(reason == .shutdown)
        #expect(events.dropFirst() == [.returned(Self.push(3)), .returned(Self.push(4))])
        #expect(rig.machine.freeStreams == 0)
        rig.answer(1)
        #expect(rig.machine.phase == .draining)
        rig.answer(3, 400)
        #expect(rig.machine.phase == .ended)
        #expect(rig.events().count == 3)
    }

    @Test func `a GOAWAY that is only an announcement keeps the pending pushes`() {
        var rig = Rig.proven()
        rig.send(2)
        rig.goAway(last: 0x7FFF_FFFF)
        #expect(rig.events().count == 1)
        rig.goAway(last: 1)
        #expect(rig.events() == [.returned(Self.push(2))])
    }

    @Test func `a closed socket loses what left whole, and returns what did not`() {
        var rig = Rig.proven(settings: [(4, 20)])
        rig.send(1, bytes: 20)
        rig.send(1, bytes: 21)
        rig.machine.closed("gone")
        #expect(
            rig.events() == [
                .lost(Self.push(1), mayHaveBeenProcessed: true, detail: "gone"), .returned(Self.push(2)),
                .ended(ConnectionFault(.closed, "gone")),
            ])
    }

    @Test func `an answer before the body ends that push alone and resets its stream`() {
        var rig = Rig.proven(settings: [(4, 0)])
        rig.send(2)
        rig.answer(1, 400)
        #expect(rig.events().count == 1)
        #expect(rig.frames(.resetStream).map(\.head.stream) == [1])
        rig.reset(1, .noError)
        rig.window(3, 100)
        #expect(rig.frames(.data).map(\.head.stream) == [3])
        rig.answer(3)
        #expect(rig.events().count == 1)
    }

    @Test func `a reset with NO_ERROR after the status is the answer`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.answer(1, 413, endsStream: false)
        rig.reset(1, .noError)
        #expect(rig.events() == [.answered(Self.push(1), RawAnswer(status: 413))])
    }

    @Test func `any other reset leaves the fate open`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.reset(1, .cancel)
        guard case .lost(_, true, _)? = rig.events().first else {
            Issue.record("not lost")
            return
        }
    }

    @Test func `the connection's window applies, and the oldest body continues first`() {
        var rig = Rig.proven()
        // The window of 65,535 bytes is sixteen bodies of 4000 and a part of the next.
        #expect(rig.send(100, bytes: 4000).count == 17)
        #expect(rig.machine.sendWindow == 0)
        #expect(rig.frames(.data).map(\.head.length).reduce(0, +) == 65_535)
        rig.written = []
        rig.window(0, 3000)
        let frames = rig.frames(.data)
        #expect(frames.first?.head.stream == 33)
        #expect(frames.first?.head.length == 17 * 4000 - 65_535)
        #expect(frames.first?.head.flags == .endStream)
        #expect(rig.machine.freeStreams > 0)
    }

    @Test func `a body that waits for its own window delays no other`() {
        var rig = Rig.proven(settings: [(4, 5)])
        rig.send(1, bytes: 10)
        #expect(rig.machine.freeStreams > 0)
        rig.settings([(4, 100)])
        #expect(rig.frames(.data).map(\.head.length) == [5, 5])
    }

    @Test func `a deadline resets the stream, and repeated timeouts end the use of the connection`() {
        var rig = Rig.proven()
        let ids = rig.send(4)
        let mayBeProcessed = [rig.machine.timedOut(ids[0]), rig.machine.timedOut(ids[1])]
        #expect(mayBeProcessed == [.unanswered(mayHaveBeenProcessed: true), .unanswered(mayHaveBeenProcessed: true)])
        rig.answer(ids[2])
        #expect(rig.machine.phase == .open)
        let more = rig.send(3)
        for id in more { _ = rig.machine.timedOut(id) }
        #expect(rig.machine.phase == .draining)
        #expect(rig.frames(.resetStream).count == 5)
        rig.answer(ids[3])
        #expect(rig.machine.phase == .ended)
    }

    @Test func `a connection without data sends a ping while an answer is pending, and ends without a pong`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.machine.timePassed(Self.start)
        rig.machine.timePassed(Self.start + .seconds(4))
        #expect(rig.frames(.ping).isEmpty)
        rig.machine.timePassed(Self.start + .seconds(6))
        #expect(rig.frames(.ping).count == 1)
        rig.machine.timePassed(Self.start + .seconds(8))
        #expect(rig.frames(.ping).count == 1)
        #expect(rig.machine.phase == .open)
        rig.machine.timePassed(Self.start + .seconds(12))
        #expect(rig.machine.phase == .ended)
        guard case .lost? = rig.events().first else {
            Issue.record("not lost")
            return
        }
    }

    @Test func `an answered ping keeps the connection, and an idle one gets a ping too`() {
        var rig = Rig.proven()
        rig.machine.timePassed(Self.start + .seconds(599))
        #expect(rig.frames(.ping).isEmpty)
        rig.machine.timePassed(Self.start + .seconds(601))
        let ping = rig.frames(.ping)
        #expect(ping.count == 1)
        rig.feed(.ping, .acknowledgement, payload: ping[0].payload, at: Self.start + .seconds(602))
        rig.machine.timePassed(Self.start + .seconds(700))
        #expect(rig.machine.phase == .open)
    }

    @Test func `the peer's pings are answered`() {
        var rig = Rig()
        rig.feed(.ping, payload: ByteBuffer(integer: 42 as UInt64))
        let answer = rig.frames(.ping)
        #expect(answer.first?.head.flags == .acknowledgement)
        #expect(answer.first?.payload == ByteBuffer(integer: 42 as UInt64))
    }

    @Test func `settings that never come end the attempt`() {
        var rig = Rig(open: false)
        rig.machine.timePassed(Self.start + .seconds(6))
        #expect(rig.machine.phase == .ended)
    }

    @Test func `when the stream numbers are used up the connection drains`() {
        var options = ConnectionMachine.Options()
        options.firstStream = 0x7FFF_FFFD
        var rig = Rig.proven(options)
        #expect(rig.send(5) == [0x7FFF_FFFD, 0x7FFF_FFFF])
        guard case .draining(let fault, _)? = rig.events().first else {
            Issue.record("not draining")
            return
        }
        #expect(fault.kind == .exhausted)
    }

    @Test func `a retired connection completes its pushes, sends GOAWAY and ends`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.machine.retire("enough")
        #expect(rig.machine.freeStreams == 0)
        rig.answer(1)
        #expect(rig.machine.phase == .ended)
        #expect(rig.frames(.goAway).count == 1)
    }

    @Test func `a cancelled push is reset and not spoken of again`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.machine.cancelled(1)
        rig.answer(1)
        #expect(rig.events().isEmpty)
        #expect(rig.frames(.resetStream).count == 1)
    }

    @Test func `a body that is too large is cut, and the answer remains valid`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.answer(1, 500, endsStream: false)
        for _ in 0..<2 { rig.feed(.data, stream: 1, payload: ByteBuffer(repeating: 0x20, count: 10_000)) }
        guard case .answered(_, let answer)? = rig.events().first else {
            Issue.record("no answer")
            return
        }
        #expect(answer.status == 500)
        #expect(answer.body.count == 16_384)
        #expect(rig.frames(.resetStream).count == 1)
    }

    @Test func `data that arrives in pieces is read like data that arrives whole`() {
        var whole = ByteBuffer()
        var other = Rig.proven()
        var block = ByteBuffer()
        other.encode([":status": "410", "apns-id": "x"], into: &block)
        APNsFrameHead(length: block.readableBytes, kind: .headers, flags: .endHeaders, stream: 1).write(into: &whole)
        whole.writeBuffer(&block)
        APNsFrameHead(length: 6, kind: .data, flags: [.padded], stream: 1).write(into: &whole)
        whole.writeBytes([1] + Array("body".utf8) + [0])
        APNsFrameHead(length: 4, kind: .data, flags: .endStream, stream: 1).write(into: &whole)
        whole.writeString("more")
        for size in 1...whole.readableBytes {
            var rig = Rig.proven()
            rig.send(1)
            var rest = whole
            while var piece = rest.readSlice(length: min(size, rest.readableBytes)), piece.readableBytes > 0 {
                rig.machine.received(&piece, now: Self.start)
            }
            var expected = RawAnswer(status: 410)
            expected.id = "x"
            expected.body = Array("bodymore".utf8)
            #expect(rig.events() == [.answered(Self.push(1), expected)], "pieces of \(size)")
        }
    }

    @Test func `random bytes end the connection or wait for more, and harm nothing`() {
        var generator = SeededRandom.forTest()
        for _ in 0..<2000 {
            var rig = Rig.proven()
            rig.send(3)
            for _ in 0..<5 {
                var bytes = ByteBuffer()
                APNsFrameHead(
                    length: Int.random(in: 0...40, using: &generator),
                    kind: APNsFrameHead.Kind(rawValue: UInt8.random(in: 0...9, using: &generator)),
                    flags: APNsFrameHead.Flags(rawValue: UInt8.random(in: 0...255, using: &generator)),
                    stream: UInt32.random(in: 0...8, using: &generator)
                ).write(into: &bytes)
                let length = Int.random(in: 0...60, using: &generator)
                bytes.writeBytes((0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) })
                rig.machine.received(&bytes, now: Self.start)
            }
            rig.machine.closed("over")
            var notified = Set<PushID>()
            for event in rig.events() {
                switch event {
                case .answered(let push, _), .returned(let push, _), .lost(let push, _, _):
                    #expect(notified.insert(push).inserted)
                default: break
                }
            }
            #expect(notified.count == 3)
        }
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\n\r\n"), ("\u{0}\u{0}\u{4}\u{8}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}"),
    ])
    func `a host without HTTP 2 is distinguished from a host that fails`(text: String) {
        var rig = Rig(open: false)
        var bytes = ByteBuffer(string: text)
        rig.machine.received(&bytes, now: Self.start)
        #expect(rig.events() == [.ended(ConnectionFault(.notHTTP2, "The host does not support HTTP/2."))])
    }

    @Test func `a flood of settings changes leaves every window right`() {
        var rig = Rig.proven()
        rig.send(1, bytes: 100)
        for size: UInt32 in [0, 10, 1000, 65_535, 5] { rig.settings([(4, size)]) }
        #expect(rig.machine.streams[1]?.window == 5 - 100)
        rig.settings([(4, 0x8000_0000)])
        #expect(rig.machine.phase == .ended)
    }

    @Test func `a path longer than a frame is continued`() throws {
        var rig = Rig.proven()
        let path = "/3/device/" + String(repeating: "#", count: 40_000)
        _ = rig.machine.send(Self.push(1), Self.head, nil, path: path, body: RequestBody([1]))
        rig.take()
        var block = ByteBuffer()
        for frame in rig.written where frame.head.kind == .headers || frame.head.kind == .continuation {
            #expect(frame.head.length <= 16_384)
            block.writeImmutableBuffer(frame.payload)
        }
        #expect(rig.written.filter { $0.head.flags.contains(.endHeaders) && $0.head.kind != .data }.count == 1)
        var decoder = HPACKDecoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096, maxHeaderListSize: 100_000)
        let headers = try decoder.decodeHeaders(from: &block)
        #expect(headers.first(name: ":path") == path)
    }
}
