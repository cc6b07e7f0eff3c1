import Foundation
import NIOCore
import NIOHPACK
import TestSupport

@testable import CarillonAPNsSimulator

/// Writes a client's frames byte by byte, and takes a server's apart.
struct FrameClient {
    struct Frame: Equatable {
        var kind: UInt8
        var flags: UInt8
        var stream: UInt32
        var payload: [UInt8]

        var number: UInt32 { payload.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
    }

    var bytes = ByteBuffer(string: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())

    init(settings: [UInt8] = []) { frame(0x4, 0, 0, settings) }

    mutating func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) {
        bytes.writeFrameHeader(SimulatorFrameHeader(payloadLength: payload.count, kind: kind, flags: flags, stream: stream))
        bytes.writeBytes(payload)
    }

    mutating func block(_ headers: HPACKHeaders) throws -> [UInt8] {
        var block = ByteBuffer()
        try encoder.encode(headers: headers, to: &block)
        return Array(block.readableBytesView)
    }

    static let push: HPACKHeaders = [
        ":method": "POST", ":scheme": "https", ":path": "/3/device/aa", ":authority": "localhost", "apns-topic": "a.b",
    ]

    /// A complete request, or one whose body never ends.
    mutating func request(_ stream: UInt32, body: [UInt8] = [1, 2, 3], ends: Bool = true) throws {
        frame(0x1, 0x4, stream, try block(Self.push))
        frame(0x0, ends ? 0x1 : 0, stream, body)
    }

    mutating func take() -> ByteBuffer {
        defer { bytes = ByteBuffer() }
        return bytes
    }

    static func frames(_ bytes: ByteBuffer) -> [Frame] {
        var bytes = bytes
        var frames: [Frame] = []
        while let header = bytes.peekFrameHeader() {
            bytes.moveReaderIndex(forwardBy: SimulatorFrameHeader.length)
            frames.append(
                Frame(
                    kind: header.kind, flags: header.flags, stream: header.stream,
                    payload: bytes.readBytes(length: header.payloadLength) ?? []))
        }
        return frames
    }
}

extension HTTP2Connection {
    /// Everything that happens, with requests completed by their headers.
    mutating func events() -> [String] {
        var names: [String] = []
        while let event = nextEvent() {
            names.append(Self.name(event))
            if case .headersArrived(let stream, _) = event, let next = completionAfterHeaders(stream) {
                names.append(Self.name(next))
            }
        }
        return names
    }

    private static func name(_ event: Event) -> String {
        switch event {
        case .headersArrived(let stream, _): "headers \(stream)"
        case .requestCompleted(let stream, _, let body, let bytes): "request \(stream) \(body.readableBytes)/\(bytes)"
        case .streamReset(let stream): "reset \(stream)"
        case .headersTooLarge(let stream): "too large \(stream)"
        case .streamRefused(let stream): "refused \(stream)"
        case .pingArrived: "ping"
        case .priorityArrived: "priority"
        case .streamLimitViolated(let stream): "violated \(stream)"
        case .failed(let code): "failed \(code.name)"
        }
    }

    mutating func takeFrames() -> [FrameClient.Frame] {
        defer { output = ByteBuffer() }
        return FrameClient.frames(output)
    }
}

extension IdentifierSource {
    static func ofTheDay(_ test: String = #function) -> IdentifierSource {
        var random = SeededRandom.forTest(test)
        return IdentifierSource(seed: random.next())
    }
}
