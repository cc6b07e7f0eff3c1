import NIOCore
import Testing

@testable import CarillonAPNs

/// The data that waits to be written to a service that does not read is bounded, whatever the service requests.
struct BacklogTests {
    typealias Rig = ConnectionMachineTests.Rig

    static func at(_ seconds: Int) -> Moment { ConnectionMachineTests.start + .seconds(seconds) }

    /// Frames to which there is an answer, as they fill one read.
    enum Flood: CaseIterable {
        case pings, settings, emptySettings, data

        var frame: ByteBuffer {
            var bytes = ByteBuffer()
            switch self {
            case .pings:
                APNsFrameHead(length: 8, kind: .ping).write(into: &bytes)
                bytes.writeInteger(1 as UInt64)
            case .settings:
                APNsFrameHead(length: 6, kind: .settings).write(into: &bytes)
                bytes.writeMultipleIntegers(PeerSettings.maxHeaderListSize, 8000 as UInt32)
            case .emptySettings: APNsFrameHead(length: 0, kind: .settings).write(into: &bytes)
            case .data:
                // For a finished stream; each two of them open the connection's window once.
                APNsFrameHead(length: 16_384, kind: .data, stream: 1).write(into: &bytes)
                bytes.writeRepeatingByte(0, count: 16_384)
            }
            return bytes
        }
    }

    @Test(arguments: Flood.allCases)
    func `a service that sends pings without end and does not read is disconnected`(flood: Flood) {
        var rig = Rig.proven()
        rig.answer(rig.send(1)[0])
        rig.send(1)
        rig.take()
        _ = rig.events()
        let frame = flood.frame
        var most = 0
        var fed = 0
        while rig.machine.phase == .open, fed < 200_000 {
            var bytes = frame
            rig.machine.received(&bytes, now: ConnectionMachineTests.start)
            most = max(most, rig.machine.output.readableBytes)
            fed += 1
        }
        #expect(rig.machine.phase == .ended)
        #expect(most <= rig.machine.options.largestBacklog + 64)
        // Nothing of the backlog is kept for a socket that will not take it.
        #expect(rig.machine.output.readableBytes == 17)
        guard case .lost? = rig.events().first else {
            Issue.record("the push that was under way is not spoken of")
            return
        }
    }

    @Test func `a service that sends pings without end and reads is answered without end`() {
        var rig = Rig.proven()
        let frame = Flood.pings.frame
        for _ in 0..<10 {
            // The number of bytes of four reads.
            for _ in 0..<15_000 {
                var bytes = frame
                rig.machine.received(&bytes, now: ConnectionMachineTests.start)
            }
            #expect(rig.machine.takeOutput()?.readableBytes == 15_000 * 17)
        }
        #expect(rig.machine.phase == .open)
    }

    @Test func `a thousand pushes that are cancelled at once are no backlog`() {
        var options = ConnectionMachine.Options()
        options.largestBacklog = 1000
        var rig = Rig.proven(options)
        for id in rig.send(1000) { rig.machine.cancelled(id) }
        rig.feed(.ping, payload: ByteBuffer(integer: 1 as UInt64))
        #expect(rig.machine.phase == .open)
    }

    @Test func `while the socket accepts no data, no push is accepted`() {
        var rig = Rig.proven()
        rig.machine.outputPaused(Self.at(0))
        #expect(rig.machine.freeStreams == 0)
        rig.machine.outputResumed()
        #expect(rig.machine.freeStreams == 1000)
    }

    @Test func `a socket that accepts no data for ten seconds is abandoned`() {
        var rig = Rig.proven()
        rig.send(1)
        rig.machine.outputPaused(Self.at(0))
        for second in 1...10 {
            // The service continues to send, which does not count.
            rig.feed(.ping, payload: ByteBuffer(integer: 1 as UInt64), at: Self.at(second))
            rig.machine.outputPaused(Self.at(second))
            rig.machine.timePassed(Self.at(second))
        }
        #expect(rig.machine.phase == .open)
        rig.machine.timePassed(Self.at(11))
        #expect(rig.machine.phase == .ended)
        guard case .ended(let fault)? = rig.events().last else {
            Issue.record("not ended")
            return
        }
        #expect(fault.kind == .silent)
    }

    @Test func `a socket that accepts some data now and then is kept`() {
        var rig = Rig.proven()
        for second in stride(from: 0, to: 60, by: 8) {
            rig.machine.outputPaused(Self.at(second))
            rig.machine.timePassed(Self.at(second + 7))
            rig.machine.outputResumed()
            rig.machine.timePassed(Self.at(second + 7))
        }
        #expect(rig.machine.phase == .open)
    }
}
