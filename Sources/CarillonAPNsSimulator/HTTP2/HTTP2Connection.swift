import NIOCore
import NIOHPACK

/// The server's side of one HTTP/2 connection (RFC 9113), without a socket. Bytes are passed to ``received(_:)``, events are
/// returned by ``nextEvent()``, and bytes to send are collected in ``output``.
///
/// It follows the protocol strictly. The actions of a misbehaving server (GOAWAY, resets, changed limits) are separate
/// functions. Windows are restored as the body of a request is read, up to a target that can be smaller than the protocol's
/// 65,535 bytes, so that a sender finds a narrow or a closed window.
///
/// A stream exists from its HEADERS until both sides have ended it or one side has reset it. After a violation of the
/// protocol, `isFailed` is set and nothing more is read. After a GOAWAY, a connection serves the streams up to `acceptedUpTo`
/// and ignores all others, as the real service does.
struct HTTP2Connection {
    typealias ErrorCode = APNsSimulator.HTTP2ErrorCode

    enum Event {
        /// The head of a request was received. Its body may follow.
        case headersArrived(UInt32, SimulatorRequestHead)
        /// A request had a larger header list than was offered, and the response was 431.
        case headersTooLarge(UInt32)
        /// The whole request was received. `bodyBytes` is the number of sent bytes; `body` contains no more than the limit.
        case requestCompleted(UInt32, SimulatorRequestHead, body: ByteBuffer, bodyBytes: Int)
        case streamReset(UInt32)
        /// A stream beyond the offered limit was opened. The peer may not know the limit yet.
        case streamRefused(UInt32)
        case pingArrived
        case priorityArrived
        /// A stream beyond the limit was opened, although the peer had acknowledged the limit.
        case streamLimitViolated(UInt32)
        /// The peer violated the protocol. A GOAWAY was sent, and the connection must be closed.
        case failed(ErrorCode)
    }

    private struct Stream {
        var head: SimulatorRequestHead
        var body = ByteBuffer()
        var bodyBytes = 0
        var receiveWindow: Int
        var sendWindow: Int
        var isRemoteOpen: Bool
        var isLocalOpen = true
        var unsent: ByteBuffer?
        var isAnswering: Bool { unsent != nil || !isLocalOpen }
    }

    private struct OfferedSettings {
        var streams: Int?
        var initialWindow: Int?
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    private static let protocolWindow = 65_535
    private static let largestWindow = Int(Int32.max)
    /// The header list size that the real service advertises, counted as in section 6.5.2: with 32 bytes for each field in
    /// addition to name and value.
    static let largestHeaderList = 8000
    /// The number of bytes that are read before the list is checked. A longer block ends the connection.
    private static let largestHeaderBlock = 32_768

    /// The bytes to send, in order.
    var output = ByteBuffer()
    private(set) var isFailed = false
    private(set) var acceptedUpTo = UInt32(Int32.max)
    private(set) var highestStream: UInt32 = 0
    var answersPings = true

    private var input = ByteBuffer()
    private var hasPreface = false
    private var streams: [UInt32: Stream] = [:]
    private var decoder: HPACKDecoder
    private var encoder: HPACKEncoder
    private var headerBlock: (stream: UInt32, ends: Bool, bytes: ByteBuffer)?

    private var offered: [OfferedSettings] = []
    private var acknowledgedStreams = Int.max
    private var offeredStreams = Int.max
    private var initialReceiveWindow = HTTP2Connection.protocolWindow
    private var connectionReceiveWindow = HTTP2Connection.protocolWindow
    private let connectionTarget: Int
    private let bodyLimit: Int

    private var initialSendWindow = HTTP2Connection.protocolWindow
    private var connectionSendWindow = HTTP2Connection.protocolWindow

    init(connectionTarget: Int = HTTP2Connection.protocolWindow, bodyLimit: Int = 8192) {
        self.connectionTarget = connectionTarget
        self.bodyLimit = bodyLimit
        let allocator = ByteBufferAllocator()
        decoder = HPACKDecoder(allocator: allocator, maxDynamicTableSize: 4096, maxHeaderListSize: 16_384)
        encoder = HPACKEncoder(allocator: allocator)
    }

    /// The number of streams that count towards the limit.
    var openStreams: Int { streams.count }
    /// Whether a GOAWAY was sent and all streams up to its last one were served.
    var isDrained: Bool { acceptedUpTo < UInt32(Int32.max) && streams.isEmpty }

    // MARK: Reading

    mutating func received(_ bytes: ByteBuffer) {
        guard !isFailed else { return }
        if input.readableBytes == 0 {
            input = bytes
        } else {
            var bytes = bytes
            input.writeBuffer(&bytes)
        }
    }

    /// Returns the next event; nil until more bytes arrive.
    mutating func nextEvent() -> Event? {
        while !isFailed {
            guard hasPreface else {
                guard readPreface() else { return isFailed ? .failed(.protocolError) : nil }
                continue
            }
            guard let header = input.peekFrameHeader() else { return nil }
            guard header.payloadLength <= SimulatorFrameHeader.maximumPayload else { return fail(.frameSizeError) }
            guard input.readableBytes >= SimulatorFrameHeader.length + header.payloadLength else { return nil }
            input.moveReaderIndex(forwardBy: SimulatorFrameHeader.length)
            guard let payload = input.readSlice(length: header.payloadLength) else { return nil }
            if let event = receivedFrame(header, payload) { return event }
        }
        return nil
    }

    private mutating func readPreface() -> Bool {
        let available = min(input.readableBytes, Self.preface.count)
        guard input.readableBytesView.prefix(available).elementsEqual(Self.preface.prefix(available)) else {
            _ = fail(.protocolError)
            return false
        }
        guard available == Self.preface.count else { return false }
        input.moveReaderIndex(forwardBy: available)
        hasPreface = true
        return true
    }

    private mutating func receivedFrame(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        if let headerBlock, header.kind != SimulatorFrameHeader.Kind.continuation || header.stream != headerBlock.stream {
            return fail(.protocolError)
        }
        switch header.kind {
        case SimulatorFrameHeader.Kind.data: return receivedData(header, payload)
        case SimulatorFrameHeader.Kind.headers: return receivedHeaders(header, payload)
        case SimulatorFrameHeader.Kind.continuation: return receivedContinuation(header, payload)
        case SimulatorFrameHeader.Kind.priority:
            guard header.stream != 0 else { return fail(.protocolError) }
            return header.payloadLength == 5 ? .priorityArrived : fail(.frameSizeError)
        case SimulatorFrameHeader.Kind.reset: return receivedReset(header, payload)
        case SimulatorFrameHeader.Kind.settings: return receivedSettings(header, payload)
        case SimulatorFrameHeader.Kind.ping: return receivedPing(header, payload)
        case SimulatorFrameHeader.Kind.windowUpdate: return receivedWindowUpdate(header, payload)
        case SimulatorFrameHeader.Kind.pushPromise: return fail(.protocolError)
        default: return nil
        }
    }

    private mutating func receivedHeaders(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard header.stream % 2 == 1 else { return fail(.protocolError) }
        guard var block = Self.unpadded(header, payload) else { return fail(.protocolError) }
        let hasPriority = header.has(SimulatorFrameHeader.Flag.priority)
        if hasPriority, block.readSlice(length: 5) == nil { return fail(.frameSizeError) }
        let ends = header.has(SimulatorFrameHeader.Flag.endStream)
        guard header.has(SimulatorFrameHeader.Flag.endHeaders) else {
            headerBlock = (header.stream, ends, block)
            return nil
        }
        return completedBlock(header.stream, ends, block)
    }

    private mutating func receivedContinuation(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard var block = headerBlock else { return fail(.protocolError) }
        var payload = payload
        block.bytes.writeBuffer(&payload)
        guard block.bytes.readableBytes <= Self.largestHeaderBlock else { return fail(.enhanceYourCalm) }
        headerBlock = block
        guard header.has(SimulatorFrameHeader.Flag.endHeaders) else { return nil }
        headerBlock = nil
        return completedBlock(block.stream, block.ends, block.bytes)
    }

    private mutating func completedBlock(_ number: UInt32, _ ends: Bool, _ block: ByteBuffer) -> Event? {
        let length = block.readableBytes
        var block = block
        guard let headers = try? decoder.decodeHeaders(from: &block) else { return fail(.compressionError) }
        if streams[number] != nil { return receivedTrailers(number, ends) }
        guard number > highestStream else { return fail(.streamClosed) }
        highestStream = number
        guard number <= acceptedUpTo else { return nil }
        if openStreams >= acknowledgedStreams { return .streamLimitViolated(number) }
        if openStreams >= offeredStreams {
            writeReset(number, .refusedStream)
            return .streamRefused(number)
        }
        guard var head = SimulatorRequestHead(headers) else {
            writeReset(number, .protocolError)
            return .streamReset(number)
        }
        head.blockBytes = length
        guard !ends || head.contentLength ?? 0 == 0 else {
            writeReset(number, .protocolError)
            return .streamReset(number)
        }
        streams[number] = Stream(
            head: head, receiveWindow: initialReceiveWindow, sendWindow: initialSendWindow, isRemoteOpen: !ends)
        if head.listBytes > Self.largestHeaderList {
            // RFC 9113 section 10.5.1 allows 431 for this.
            answer(number, [":status": "431"], body: ByteBuffer())
            stopBody(number)
            return .headersTooLarge(number)
        }
        return .headersArrived(number, head)
    }

    private mutating func receivedTrailers(_ number: UInt32, _ ends: Bool) -> Event? {
        guard ends, streams[number]?.isRemoteOpen == true else { return fail(.streamClosed) }
        return endedRemotely(number)
    }

    /// Call it after ``Event/headersArrived(_:_:)``. A request without a body is complete with its headers.
    mutating func completionAfterHeaders(_ number: UInt32) -> Event? {
        guard let stream = streams[number], !stream.isRemoteOpen else { return nil }
        return .requestCompleted(number, stream.head, body: stream.body, bodyBytes: 0)
    }

    private mutating func receivedData(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        let number = header.stream
        guard number % 2 == 1, number <= highestStream else { return fail(.protocolError) }
        connectionReceiveWindow -= header.payloadLength
        guard connectionReceiveWindow >= 0 else { return fail(.flowControlError) }
        guard var data = Self.unpadded(header, payload) else { return fail(.protocolError) }
        restoreConnectionWindow(whenUsed: connectionTarget - connectionTarget / 2)
        let ends = header.has(SimulatorFrameHeader.Flag.endStream)
        guard let index = streams.index(forKey: number) else { return nil }
        guard streams.values[index].isRemoteOpen else { return fail(.streamClosed) }
        streams.values[index].receiveWindow -= header.payloadLength
        guard streams.values[index].receiveWindow >= 0 else {
            reset(number, .flowControlError)
            return .streamReset(number)
        }
        streams.values[index].bodyBytes += data.readableBytes
        if let length = streams.values[index].head.contentLength, streams.values[index].bodyBytes > length {
            reset(number, .protocolError)
            return .streamReset(number)
        }
        if streams.values[index].bodyBytes <= bodyLimit, streams.values[index].isLocalOpen {
            if streams.values[index].body.readableBytes == 0 {
                streams.values[index].body = data
            } else {
                streams.values[index].body.writeBuffer(&data)
            }
        }
        guard ends else {
            let window = streams.values[index].receiveWindow
            if window <= initialReceiveWindow / 2, window < initialReceiveWindow {
                streams.values[index].receiveWindow = initialReceiveWindow
                writeWindowUpdate(number, initialReceiveWindow - window)
            }
            return nil
        }
        return endedRemotely(number)
    }

    private mutating func endedRemotely(_ number: UInt32) -> Event? {
        streams[number]?.isRemoteOpen = false
        guard let stream = streams[number] else { return nil }
        // RFC 9113 section 8.1.1: a body that is shorter or longer than its content length is malformed.
        if let length = stream.head.contentLength, length != stream.bodyBytes, !stream.isAnswering {
            reset(number, .protocolError)
            return .streamReset(number)
        }
        guard stream.isLocalOpen else {
            streams[number] = nil
            return nil
        }
        // The request was answered already, but the client has not received the whole response.
        guard stream.unsent == nil else { return nil }
        return .requestCompleted(number, stream.head, body: stream.body, bodyBytes: stream.bodyBytes)
    }

    /// All received bytes were read. Restores the used part of the connection's window, unless it is small.
    mutating func endRead() { restoreConnectionWindow(whenUsed: connectionTarget / 8) }

    private mutating func restoreConnectionWindow(whenUsed bytes: Int) {
        guard connectionTarget - connectionReceiveWindow >= max(1, bytes) else { return }
        writeWindowUpdate(0, connectionTarget - connectionReceiveWindow)
        connectionReceiveWindow = connectionTarget
    }

    private mutating func receivedReset(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard payload.readableBytes == 4 else { return fail(.frameSizeError) }
        guard header.stream != 0, header.stream <= highestStream else { return fail(.protocolError) }
        return streams.removeValue(forKey: header.stream) == nil ? nil : .streamReset(header.stream)
    }

    private mutating func receivedPing(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard header.payloadLength == 8 else { return fail(.frameSizeError) }
        guard header.stream == 0 else { return fail(.protocolError) }
        if header.has(SimulatorFrameHeader.Flag.acknowledgement) { return nil }
        if answersPings {
            var payload = payload
            output.writeFrameHeader(
                SimulatorFrameHeader(
                    payloadLength: 8, kind: SimulatorFrameHeader.Kind.ping, flags: SimulatorFrameHeader.Flag.acknowledgement,
                    stream: 0))
            output.writeBuffer(&payload)
        }
        return .pingArrived
    }

    private mutating func receivedSettings(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard header.stream == 0 else { return fail(.protocolError) }
        if header.has(SimulatorFrameHeader.Flag.acknowledgement) {
            guard payload.readableBytes == 0 else { return fail(.frameSizeError) }
            guard !offered.isEmpty else { return fail(.protocolError) }
            confirmed(offered.removeFirst())
            return nil
        }
        guard payload.readableBytes % 6 == 0 else { return fail(.frameSizeError) }
        var payload = payload
        while let name = payload.readInteger(as: UInt16.self), let value = payload.readInteger(as: UInt32.self) {
            switch name {
            case 0x1: try? encoder.setDynamicTableSize(min(Int(value), 4096))
            case 0x4:
                guard value <= Self.largestWindow else { return fail(.flowControlError) }
                let change = Int(value) - initialSendWindow
                initialSendWindow = Int(value)
                for number in streams.keys { streams[number]?.sendWindow += change }
                sendWithinWindow()
            default: break
            }
        }
        output.writeFrameHeader(
            SimulatorFrameHeader(
                payloadLength: 0, kind: SimulatorFrameHeader.Kind.settings, flags: SimulatorFrameHeader.Flag.acknowledgement,
                stream: 0))
        return nil
    }

    private mutating func confirmed(_ settings: OfferedSettings) {
        if let limit = settings.streams { acknowledgedStreams = limit }
        if let window = settings.initialWindow {
            let change = window - initialReceiveWindow
            initialReceiveWindow = window
            for number in streams.keys { streams[number]?.receiveWindow += change }
        }
    }

    private mutating func receivedWindowUpdate(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> Event? {
        guard let word = payload.getInteger(at: payload.readerIndex, as: UInt32.self), payload.readableBytes == 4 else {
            return fail(.frameSizeError)
        }
        let increment = Int(word & 0x7FFF_FFFF)
        if header.stream == 0 {
            guard increment > 0 else { return fail(.protocolError) }
            connectionSendWindow += increment
            guard connectionSendWindow <= Self.largestWindow else { return fail(.flowControlError) }
        } else if let window = streams[header.stream]?.sendWindow {
            guard increment > 0, window + increment <= Self.largestWindow else {
                reset(header.stream, increment > 0 ? .flowControlError : .protocolError)
                return .streamReset(header.stream)
            }
            streams[header.stream]?.sendWindow += increment
        } else if header.stream > highestStream {
            return fail(.protocolError)
        }
        sendWithinWindow()
        return nil
    }

    /// Returns the payload without its padding; nil if the padding is longer than the payload.
    private static func unpadded(_ header: SimulatorFrameHeader, _ payload: ByteBuffer) -> ByteBuffer? {
        guard header.has(SimulatorFrameHeader.Flag.padded) else { return payload }
        var payload = payload
        guard let padding = payload.readInteger(as: UInt8.self), padding <= payload.readableBytes else { return nil }
        return payload.readSlice(length: payload.readableBytes - Int(padding))
    }

    private mutating func fail(_ code: ErrorCode) -> Event {
        writeGoAway(lastStream: min(highestStream, acceptedUpTo), code, debug: "")
        isFailed = true
        streams = [:]
        return .failed(code)
    }

    // MARK: Writing

    /// Sends SETTINGS: first as the first frame of the server, later to change the values.
    mutating func offer(streams limit: Int?, streamWindow: Int? = nil, headerListBytes: Int? = nil) {
        var values: [(UInt16, Int)] = []
        if let limit { values.append((0x3, limit)) }
        if let streamWindow { values.append((0x4, streamWindow)) }
        if let headerListBytes { values.append((0x6, headerListBytes)) }
        output.writeFrameHeader(
            SimulatorFrameHeader(
                payloadLength: values.count * 6, kind: SimulatorFrameHeader.Kind.settings, flags: 0, stream: 0))
        for (name, value) in values {
            output.writeInteger(name)
            output.writeInteger(UInt32(clamping: value))
        }
        if let limit { offeredStreams = limit }
        // A larger limit is valid immediately: the peer can use it before its acknowledgement is read.
        if let limit, acknowledgedStreams != Int.max { acknowledgedStreams = max(acknowledgedStreams, limit) }
        if let streamWindow, streamWindow > initialReceiveWindow, offered.isEmpty {
            confirmed(OfferedSettings(initialWindow: streamWindow))
        }
        offered.append(OfferedSettings(streams: limit, initialWindow: streamWindow))
    }

    /// Sends the response to a request. Returns false if its stream does not exist. After a response before the end of the
    /// body, the peer must end the stream.
    @discardableResult
    mutating func answer(_ number: UInt32, _ headers: HPACKHeaders, body: ByteBuffer) -> Bool {
        guard let index = streams.index(forKey: number), streams.values[index].isLocalOpen else { return false }
        let hasBody = body.readableBytes > 0
        guard write(headers, on: number, isEnd: !hasBody) else { return false }
        guard hasBody else {
            endLocally(number)
            return true
        }
        streams.values[index].unsent = body
        sendBody(number)
        return true
    }

    /// Starts a response, and resets the stream.
    mutating func breakOff(_ number: UInt32, _ headers: HPACKHeaders, _ code: ErrorCode) {
        guard streams[number]?.isLocalOpen == true, write(headers, on: number, isEnd: false) else { return }
        reset(number, code)
    }

    /// Returns false if the headers cannot be written; the stream is then reset.
    private mutating func write(_ headers: HPACKHeaders, on number: UInt32, isEnd: Bool) -> Bool {
        let start = output.writerIndex
        output.writeRepeatingByte(0, count: SimulatorFrameHeader.length)
        do {
            try encoder.encode(headers: headers, to: &output)
        } catch {
            output.moveWriterIndex(to: start)
            reset(number, .internalError)
            return false
        }
        let end = output.writerIndex
        output.moveWriterIndex(to: start)
        output.writeFrameHeader(
            SimulatorFrameHeader(
                payloadLength: end - start - SimulatorFrameHeader.length, kind: SimulatorFrameHeader.Kind.headers,
                flags: SimulatorFrameHeader.Flag.endHeaders | (isEnd ? SimulatorFrameHeader.Flag.endStream : 0),
                stream: number))
        output.moveWriterIndex(to: end)
        return true
    }

    private mutating func sendWithinWindow() {
        for number in streams.keys.sorted() where streams[number]?.unsent != nil { sendBody(number) }
    }

    private mutating func sendBody(_ number: UInt32) {
        while let stream = streams[number], var unsent = stream.unsent {
            let room = min(
                stream.sendWindow, connectionSendWindow, SimulatorFrameHeader.maximumPayload, unsent.readableBytes)
            guard room > 0, var part = unsent.readSlice(length: room) else { return }
            let isLast = unsent.readableBytes == 0
            output.writeFrameHeader(
                SimulatorFrameHeader(
                    payloadLength: room, kind: SimulatorFrameHeader.Kind.data,
                    flags: isLast ? SimulatorFrameHeader.Flag.endStream : 0,
                    stream: number))
            output.writeBuffer(&part)
            connectionSendWindow -= room
            streams[number]?.sendWindow -= room
            streams[number]?.unsent = isLast ? nil : unsent
            if isLast { endLocally(number) }
        }
    }

    private mutating func endLocally(_ number: UInt32) {
        guard let index = streams.index(forKey: number) else { return }
        if streams.values[index].isRemoteOpen {
            streams.values[index].isLocalOpen = false
        } else {
            streams.remove(at: index)
        }
    }

    mutating func reset(_ number: UInt32, _ code: ErrorCode) {
        streams[number] = nil
        writeReset(number, code)
    }

    /// Resets the stream of a finished response, because the rest of the body is not needed.
    mutating func stopBody(_ number: UInt32) {
        if streams[number]?.isLocalOpen == false { reset(number, .noError) }
    }

    /// The highest stream whose response was started; 0 if none is open.
    var highestAnswering: UInt32 { streams.lazy.filter(\.value.isAnswering).map(\.key).max() ?? 0 }

    /// Resets all streams except the given ones and those whose response was started. Returns the numbers of the reset
    /// streams.
    mutating func resetAll(except kept: Set<UInt32>, _ code: ErrorCode) -> [UInt32] {
        let others = streams.filter { !kept.contains($0.key) && !$0.value.isAnswering }.keys.sorted()
        for number in others { reset(number, code) }
        return others
    }

    /// Sends GOAWAY and drops the streams after `lastStream`. Returns the numbers of the dropped streams.
    mutating func goAway(lastStream: UInt32, _ code: ErrorCode, debug: String) -> [UInt32] {
        acceptedUpTo = min(acceptedUpTo, lastStream)
        writeGoAway(lastStream: acceptedUpTo, code, debug: debug)
        let dropped = streams.keys.filter { $0 > acceptedUpTo }
        for number in dropped { streams[number] = nil }
        return dropped
    }

    mutating func writeReset(_ number: UInt32, _ code: ErrorCode) {
        output.writeFrameHeader(
            SimulatorFrameHeader(payloadLength: 4, kind: SimulatorFrameHeader.Kind.reset, flags: 0, stream: number))
        output.writeInteger(code.rawValue)
    }

    private mutating func writeGoAway(lastStream: UInt32, _ code: ErrorCode, debug: String) {
        output.writeFrameHeader(
            SimulatorFrameHeader(
                payloadLength: 8 + debug.utf8.count, kind: SimulatorFrameHeader.Kind.goAway, flags: 0, stream: 0))
        output.writeInteger(lastStream)
        output.writeInteger(code.rawValue)
        output.writeString(debug)
    }

    private mutating func writeWindowUpdate(_ number: UInt32, _ increment: Int) {
        output.writeFrameHeader(
            SimulatorFrameHeader(payloadLength: 4, kind: SimulatorFrameHeader.Kind.windowUpdate, flags: 0, stream: number))
        output.writeInteger(UInt32(increment))
    }
}
