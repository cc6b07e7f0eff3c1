import CarillonCore
import CarillonWire
import Hummingbird
import NIOCore

/// Writes a device's inbox as server-sent events.
///
/// Writing begins while the device arrives, so that a closed connection is detected meanwhile.
struct InboxStream: Sendable {
    let feed: InboxFeed
    let readiness: Readiness
    let time: TimeSource
    /// The time between two keep-alives.
    var keepAlive = Duration.seconds(20)

    /// Connects the device, and writes until the stream ends.
    @concurrent func run(_ writer: inout any ResponseBodyWriter) async throws {
        async let begun: Void = begin()
        let fault: (any Error)?
        do {
            try await write(to: &writer)
            fault = nil
        } catch {
            fault = error
        }
        // A session can leave only after its arrival has returned.
        await begun
        feed.finish()
        if let fault { throw fault }
    }

    private func begin() async {
        await feed.begin()
        // A session that joins after all sessions were ended is not notified.
        if readiness.isStopping { feed.end(because: .serverStops) }
    }

    @concurrent private func write(to writer: inout any ResponseBodyWriter) async throws {
        // The task ends with the stream. A failed write shows that the peer closed the connection.
        let signs = Task {
            while !Task.isCancelled {
                try await Task.sleep(for: keepAlive)
                feed.keepAlive()
            }
        }
        defer { signs.cancel() }
        writing: for await batch in feed.batches {
            for item in batch.items {
                if case .envelope(let envelope) = item {
                    if feed.isWanted(envelope) {
                        try await writer.write(ByteBuffer(bytes: Self.event(item, at: time.now())))
                    }
                    feed.done(with: envelope)
                    continue
                }
                try await writer.write(ByteBuffer(bytes: Self.event(item, at: time.now())))
                if item.isLast { break writing }
            }
        }
        try await writer.finish(nil)
    }

    private static func event(_ item: InboxFeed.Item, at now: Timestamp) -> [UInt8] {
        switch item {
        case .envelope(let envelope):
            let frame = ServerFrame(envelope).written(at: now.milliseconds)
            return Array("event: \(frame.typeName)\nid: \(envelope.id)\ndata: ".utf8) + frame.text + Array("\n\n".utf8)
        case .caughtUp: return Array("event: caughtUp\ndata: ".utf8) + ServerFrame.caughtUp.text + Array("\n\n".utf8)
        case .keepAlive: return Array(": \n\n".utf8)
        case .ended(let reason): return Array("event: end\ndata: {\"reason\":\"\(reason)\"}\n\n".utf8)
        // The stream ends without an event, and the device connects again.
        case .failed: return []
        }
    }
}
