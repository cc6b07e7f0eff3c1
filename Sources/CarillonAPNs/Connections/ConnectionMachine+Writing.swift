import NIOCore

/// The frames that the connection writes.
extension ConnectionMachine {
    mutating func writeHeaders(
        _ id: UInt32, _ head: APNsRequestHead, _ authorization: ProviderToken?, path: String, endsStream: Bool
    ) {
        let start = output.writerIndex
        // The head of the frame is written again when the length of the block is known.
        APNsFrameHead(length: 0, kind: .headers, stream: id).write(into: &output)
        encoder.encode(head, authorization, path: path, into: &output)
        let length = output.writerIndex - start - APNsFrameHead.bytes
        let end = endsStream ? APNsFrameHead.Flags.endStream : []
        guard length > APNsFrameHead.largestPayload else {
            return rewrite(
                APNsFrameHead(length: length, kind: .headers, flags: end.union(.endHeaders), stream: id), at: start)
        }
        // A path can be longer than a frame, because a token can have any length.
        var block = output.getSlice(at: start + APNsFrameHead.bytes, length: length) ?? ByteBuffer()
        output.moveWriterIndex(to: start)
        var kind = APNsFrameHead.Kind.headers
        while var part = block.readSlice(length: min(APNsFrameHead.largestPayload, block.readableBytes)),
            part.readableBytes > 0
        {
            var flags = kind == .headers ? end : []
            if block.readableBytes == 0 { flags.insert(.endHeaders) }
            APNsFrameHead(length: part.readableBytes, kind: kind, flags: flags, stream: id).write(into: &output)
            output.writeBuffer(&part)
            kind = .continuation
        }
    }

    private mutating func rewrite(_ head: APNsFrameHead, at start: Int) {
        let end = output.writerIndex
        output.moveWriterIndex(to: start)
        head.write(into: &output)
        output.moveWriterIndex(to: end)
    }

    /// Writes as much of a stream's body as the flow-control windows allow.
    mutating func writeBody(of id: UInt32, _ stream: inout Stream) {
        while !stream.isWhole {
            let length = min(stream.body.readableBytes, APNsFrameHead.largestPayload, sendWindow, stream.window)
            guard length > 0 else { return }
            let isLast = length == stream.body.readableBytes
            APNsFrameHead(length: length, kind: .data, flags: isLast ? .endStream : [], stream: id).write(into: &output)
            output.writeBytes(stream.body.readableBytesView.prefix(length))
            stream.body.moveReaderIndex(forwardBy: length)
            sendWindow -= length
            stream.window -= length
        }
    }

    /// Writes waiting bodies after a window was opened, the oldest first.
    mutating func writeBlockedBodies() {
        guard !blocked.isEmpty else { return }
        var still: [UInt32] = []
        for (index, id) in blocked.enumerated() {
            guard sendWindow > 0 else {
                still.append(contentsOf: blocked[index...])
                break
            }
            guard var stream = streams[id] else { continue }
            writeBody(of: id, &stream)
            streams[id] = stream
            if !stream.isWhole { still.append(id) }
        }
        blocked = still
    }

    mutating func writeReset(_ id: UInt32, _ code: HTTP2Code) {
        APNsFrameHead(length: 4, kind: .resetStream, stream: id).write(into: &output)
        output.writeInteger(code.rawValue)
    }

    mutating func writeWindowUpdate(_ id: UInt32, _ bytes: Int) {
        writeReply(APNsFrameHead(length: 4, kind: .windowUpdate, stream: id)) { $0.writeInteger(UInt32(bytes)) }
    }

    /// Writes a reply to a frame of the peer. The peer can provoke any number of replies, so the bytes of waiting replies are
    /// counted.
    mutating func writeReply(_ head: APNsFrameHead, _ payload: (inout ByteBuffer) -> Void = { _ in }) {
        head.write(into: &output)
        payload(&output)
        repliesWaiting += APNsFrameHead.bytes + head.length
    }
}
