import NIOCore
import NIOHPACK

/// The frames that the peer sends.
extension ConnectionMachine {
    mutating func received(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        if phase == .awaitingSettings, head.kind != .settings && head.kind != .goAway { throw .notHTTP2 }
        if let headerBlock, head.kind != .continuation || head.stream != headerBlock.stream {
            throw ProtocolFault(.protocolError, "A header block was interrupted by another frame.")
        }
        switch head.kind {
        case .headers: try receivedHeaders(head, &payload)
        case .continuation: try receivedContinuation(head, &payload)
        case .data: try receivedData(head, &payload)
        case .resetStream: try receivedReset(head, &payload)
        case .settings: try receivedSettings(head, &payload)
        case .ping: try receivedPing(head, &payload)
        case .goAway: try receivedGoAway(head, &payload)
        case .windowUpdate: try receivedWindowUpdate(head, &payload)
        case .pushPromise: throw ProtocolFault(.protocolError, "The service sent a push of HTTP/2, which is disabled.")
        case .priority: try receivedPriority(head, &payload)
        case nil: break
        }
    }

    // MARK: Responses

    private mutating func receivedHeaders(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        try checkStream(head.stream)
        try removePadding(head, &payload)
        if head.flags.contains(.priority) {
            guard payload.readableBytes >= 5 else { throw ProtocolFault(.frameSizeError, "HEADERS are too short.") }
            try readPriority(of: head.stream, &payload)
        }
        let endsStream = head.flags.contains(.endStream)
        guard head.flags.contains(.endHeaders) else {
            headerBlock = (head.stream, endsStream, payload)
            return
        }
        try receivedBlock(head.stream, endsStream: endsStream, &payload)
    }

    private mutating func receivedContinuation(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard var block = headerBlock else {
            throw ProtocolFault(.protocolError, "CONTINUATION came without HEADERS.")
        }
        block.bytes.writeBuffer(&payload)
        guard block.bytes.readableBytes <= 65_536 else {
            throw ProtocolFault(.enhanceYourCalm, "A header block is larger than 65536 bytes.")
        }
        headerBlock = block
        guard head.flags.contains(.endHeaders) else { return }
        headerBlock = nil
        try receivedBlock(block.stream, endsStream: block.endsStream, &block.bytes)
    }

    private mutating func receivedBlock(
        _ id: UInt32, endsStream: Bool, _ block: inout ByteBuffer
    ) throws(ProtocolFault) {
        let headers: HPACKHeaders
        do {
            // The block is decoded also for a finished stream, because it changes the peer's header table.
            headers = try decoder.decodeHeaders(from: &block)
        } catch {
            throw ProtocolFault(.compressionError, "A header block cannot be read, or is too large.")
        }
        guard var stream = streams[id] else { return }
        if stream.answer == nil {
            guard let answer = RawAnswer(headers), answer.status >= 200 || !endsStream else {
                return fail(id, stream, .protocolError, "The head of the service's answer is malformed.")
            }
            guard answer.status >= 200 else { return }
            if endsStream { return complete(id, stream, answer, endsCleanly: true) }
            stream.answer = answer
            streams[id] = stream
        } else if endsStream, RawAnswer.areTrailers(headers), let answer = stream.answer {
            complete(id, stream, answer, endsCleanly: true)
        } else {
            fail(id, stream, .protocolError, "The service's trailers are malformed.")
        }
    }

    private mutating func receivedData(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        try checkStream(head.stream)
        unacknowledgedBytes += head.length
        if unacknowledgedBytes >= 32_768 {
            writeWindowUpdate(0, unacknowledgedBytes)
            unacknowledgedBytes = 0
        }
        try removePadding(head, &payload)
        guard var stream = streams[head.stream] else { return }
        guard var answer = stream.answer else {
            return fail(head.stream, stream, .protocolError, "The service sent a body before its status.")
        }
        answer.body.append(contentsOf: payload.readableBytesView.prefix(stream.answerLimit - answer.body.count))
        if head.flags.contains(.endStream) {
            return complete(head.stream, stream, answer, endsCleanly: true)
        }
        // The body of a rejection is far smaller than the limit.
        guard answer.body.count < stream.answerLimit else {
            return complete(head.stream, stream, answer, endsCleanly: false)
        }
        stream.answer = answer
        stream.unacknowledgedBytes += head.length
        if stream.unacknowledgedBytes >= 32_768 {
            writeWindowUpdate(head.stream, stream.unacknowledgedBytes)
            stream.unacknowledgedBytes = 0
        }
        streams[head.stream] = stream
    }

    private mutating func receivedReset(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        try checkStream(head.stream)
        guard head.length == 4, let number = payload.readInteger(as: UInt32.self) else {
            throw ProtocolFault(.frameSizeError, "RST_STREAM has \(head.length) bytes instead of 4.")
        }
        guard let stream = streams.removeValue(forKey: head.stream) else { return }
        if !stream.isWhole { blocked.removeAll { $0 == head.stream } }
        let code = HTTP2Code(rawValue: number)
        if code == .refusedStream || code == .enhanceYourCalm { slowDown() }
        if let answer = stream.answer {
            decided(stream.push, answer)
        } else if code == .refusedStream {
            events.append(.returned(stream.push, isRefused: true))
        } else {
            events.append(
                .lost(
                    stream.push, mayHaveBeenProcessed: stream.isWhole,
                    detail: "The service reset the request with HTTP/2 code \(number)."))
        }
        endIfDrained()
    }

    // MARK: The connection

    private mutating func receivedSettings(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.stream == 0 else { throw ProtocolFault(.protocolError, "SETTINGS came on a stream.") }
        if head.flags.contains(.acknowledgement) {
            guard phase != .awaitingSettings else { throw .notHTTP2 }
            guard head.length == 0 else {
                throw ProtocolFault(.frameSizeError, "An acknowledgement of SETTINGS has \(head.length) bytes.")
            }
            return
        }
        guard head.length % 6 == 0 else { throw ProtocolFault(.frameSizeError, "SETTINGS have \(head.length) bytes.") }
        while let (name, value) = payload.readMultipleIntegers(as: (UInt16, UInt32).self) {
            switch name {
            case PeerSettings.headerTableSize: encoder.peerLimitsTable(to: Int(value))
            case PeerSettings.enablePush:
                // Section 6.5.2: a server may send no other value.
                guard value == 0 else { throw ProtocolFault(.protocolError, "The service announced pushes of HTTP/2.") }
            case PeerSettings.maxConcurrentStreams: peer.maxConcurrentStreams = Int(value)
            case PeerSettings.initialWindowSize: try windowsBegin(at: Int(value))
            case PeerSettings.maxFrameSize:
                guard (16_384...16_777_215).contains(value) else {
                    throw ProtocolFault(.protocolError, "A frame size of \(value) is not allowed.")
                }
            default: break
            }
        }
        writeReply(APNsFrameHead(length: 0, kind: .settings, flags: .acknowledgement))
        if phase == .awaitingSettings {
            phase = .open
            events.append(.opened)
        }
        writeBlockedBodies()
    }

    private mutating func windowsBegin(at size: Int) throws(ProtocolFault) {
        guard size <= 0x7FFF_FFFF else { throw ProtocolFault(.flowControlError, "A window of \(size) is too large.") }
        let change = size - peer.initialWindow
        peer.initialWindow = size
        for id in streams.keys {
            streams[id]?.window += change
            guard streams[id]?.window ?? 0 <= 0x7FFF_FFFF else {
                throw ProtocolFault(.flowControlError, "A window overflows.")
            }
        }
    }

    private mutating func receivedPing(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.length == 8, head.stream == 0, let value = payload.readInteger(as: UInt64.self) else {
            throw ProtocolFault(.frameSizeError, "PING is malformed.")
        }
        if head.flags.contains(.acknowledgement) { return pingAnswered() }
        writeReply(APNsFrameHead(length: 8, kind: .ping, flags: .acknowledgement)) { $0.writeInteger(value) }
    }

    /// Priorities have no effect here, but they must be valid (RFC 7540 section 5.3.1).
    private func receivedPriority(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.stream != 0 else { throw ProtocolFault(.protocolError, "PRIORITY came for the connection.") }
        guard head.length == 5 else {
            throw ProtocolFault(.frameSizeError, "PRIORITY has \(head.length) bytes instead of 5.")
        }
        try readPriority(of: head.stream, &payload)
    }

    private func readPriority(of id: UInt32, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard let (other, _) = payload.readMultipleIntegers(as: (UInt32, UInt8).self), other & 0x7FFF_FFFF != id else {
            throw ProtocolFault(.protocolError, "A stream was made to depend on itself.")
        }
    }

    private mutating func receivedGoAway(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.stream == 0, let (last, code) = payload.readMultipleIntegers(as: (UInt32, UInt32).self) else {
            throw ProtocolFault(.frameSizeError, "GOAWAY is malformed.")
        }
        let text = Array(payload.readableBytesView.prefix(512))
        let reason = APNsRejection.reason(in: text)
        lastPeerStream = min(lastPeerStream, last & 0x7FFF_FFFF)
        drain(
            ConnectionFault(
                .goneAway,
                "The service asked to close the connection (HTTP/2 code \(code)\(reason.map { ", \($0.rawValue)" } ?? ""))."
                    + (reason.map { " " + APNsRejection(status: 0, reason: $0).advice } ?? "")), reason)
        // Pushes are returned in the order in which they were sent.
        for id in streams.keys.filter({ $0 > lastPeerStream }).sorted() {
            guard let stream = streams.removeValue(forKey: id) else { continue }
            if !stream.isWhole { blocked.removeAll { $0 == id } }
            if let answer = stream.answer {
                decided(stream.push, answer)
            } else {
                events.append(.returned(stream.push))
            }
        }
        endIfDrained()
    }

    private mutating func receivedWindowUpdate(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.length == 4, let word = payload.readInteger(as: UInt32.self) else {
            throw ProtocolFault(.frameSizeError, "WINDOW_UPDATE has \(head.length) bytes instead of 4.")
        }
        let bytes = Int(word & 0x7FFF_FFFF)
        guard head.stream == 0 else { return try openStreamWindow(head.stream, by: bytes) }
        guard bytes > 0 else { throw ProtocolFault(.protocolError, "WINDOW_UPDATE opens a window by nothing.") }
        sendWindow += bytes
        guard sendWindow <= 0x7FFF_FFFF else { throw ProtocolFault(.flowControlError, "A window overflows.") }
        writeBlockedBodies()
    }

    private mutating func openStreamWindow(_ id: UInt32, by bytes: Int) throws(ProtocolFault) {
        try checkStream(id)
        guard var stream = streams[id] else { return }
        guard bytes > 0 else { return fail(id, stream, .protocolError, "The service opened a window by nothing.") }
        stream.window += bytes
        guard stream.window <= 0x7FFF_FFFF else {
            return fail(id, stream, .flowControlError, "The service opened a window too far.")
        }
        // The other streams wait for their own windows, or for the window of the connection.
        if !stream.isWhole {
            writeBody(of: id, &stream)
            if stream.isWhole { blocked.removeAll { $0 == id } }
        }
        streams[id] = stream
    }

    /// A frame must refer to a stream that was opened, also if it is finished.
    private func checkStream(_ id: UInt32) throws(ProtocolFault) {
        guard id % 2 == 1, id < nextStream else {
            throw ProtocolFault(.protocolError, "A frame came for stream \(id), which was never opened.")
        }
    }

    private func removePadding(_ head: APNsFrameHead, _ payload: inout ByteBuffer) throws(ProtocolFault) {
        guard head.flags.contains(.padded) else { return }
        guard let padding = payload.readInteger(as: UInt8.self), Int(padding) <= payload.readableBytes else {
            throw ProtocolFault(.protocolError, "A frame has more padding than bytes.")
        }
        payload.moveWriterIndex(to: payload.writerIndex - Int(padding))
    }
}

extension RawAnswer {
    /// Returns nil if the head is malformed (RFC 9113 section 8.3): no status or two, another pseudo-header, a pseudo-header
    /// after a field, or a name with capitals.
    init?(_ headers: HPACKHeaders) {
        self.init(status: 0)
        var hasFields = false
        for (name, value, _) in headers {
            if name.utf8.first == UInt8(ascii: ":") {
                guard name == ":status", !hasFields, status == 0, value.utf8.count == 3, let number = Int(value),
                    (100...999).contains(number)
                else { return nil }
                status = number
                continue
            }
            hasFields = true
            switch name {
            case "apns-id": id = value
            case "apns-unique-id": uniqueID = value
            case "apns-request-id": requestID = value
            case "apns-channel-id": channelID = value
            case "retry-after": retryAfter = value
            default: guard Self.isFieldName(name) else { return nil }
            }
        }
        guard status > 0 else { return nil }
    }

    /// Whether the headers are valid after a body: only fields (section 8.1).
    static func areTrailers(_ headers: HPACKHeaders) -> Bool {
        headers.allSatisfy { name, _, _ in name.utf8.first != UInt8(ascii: ":") && isFieldName(name) }
    }

    private static func isFieldName(_ name: String) -> Bool {
        !name.isEmpty && !name.utf8.contains { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
    }
}
