import CarillonBasics
import CarillonCore
import CarillonWire
import Hummingbird

/// One look into a device's inbox, which waits for a while where there is nothing.
struct InboxPoll: Sendable {
    let domain: Domain
    let readiness: Readiness

    struct Page: Sendable {
        var envelopes: [Envelope]
        /// Whether more waits behind them.
        var more: Bool
    }

    /// - Parameters:
    ///   - max: Envelopes; none is looked for where it is 0.
    ///   - version: Of Carillon's extension, that the client speaks.
    ///   - only: What is wanted; nil: everything.
    func page(
        of device: DeviceSerial, waitSeconds: Int, max: Int, _ version: Int, only: Set<EnvelopeKind>? = nil
    ) async throws -> Page {
        guard max > 0 else { return Page(envelopes: [], more: false) }
        let limits = DeliveryMachine.Limits(
            envelopes: max, bytes: Self.pollBytes, outputBytes: Self.pollBytes, lookAhead: 1)
        let feed = InboxFeed(
            .poll, of: device, home: domain.homes.home(of: device), time: domain.time, limits: limits, version: version,
            only: only)
        feed.begin()
        defer { feed.finish() }
        var isTimeUp = waitSeconds == 0 || !readiness.isReady
        var hasLooked = false
        // Ends with the poll.
        let clock =
            isTimeUp
            ? nil
            : Task {
                try await Task.sleep(for: .seconds(waitSeconds))
                feed.timeIsUp()
            }
        defer { clock?.cancel() }
        for await batch in feed.batches {
            var envelopes: [Envelope] = []
            for item in batch.items {
                switch item {
                case .envelope(let envelope): envelopes.append(envelope)
                case .looked: hasLooked = true
                case .caughtUp, .keepAlive: break
                case .ended(.deviceGone): throw DeviceRegistrar.credentialInvalid
                case .ended, .timeIsUp: isTimeUp = true
                case .failed(let fault): throw fault
                }
            }
            if !envelopes.isEmpty { return Page(envelopes: envelopes, more: batch.moreWaits) }
            if isTimeUp, hasLooked { break }
        }
        return Page(envelopes: [], more: false)
    }

    private static let pollBytes = 4 << 20
}

extension InboxPoll.Page {
    /// `{"envelopes":[…],"more":…}`, each envelope as the frame that a socket would carry.
    ///
    /// - Parameters:
    ///   - others: Members that follow.
    ///   - now: What is said of times counts from then.
    func response(_ others: [JSONValue.Member] = [], at now: Timestamp) async -> Response {
        var text = Array(#"{"envelopes":["#.utf8)
        var written = 0
        for (index, envelope) in envelopes.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            text += ServerFrame(envelope).written(at: now.milliseconds).text
            // The event loop has others to serve.
            if text.count - written > Self.stepBytes {
                written = text.count
                await Task.yield()
            }
        }
        text += Array(#"],"more":\#(more)"#.utf8)
        // Without the bracket that opens them.
        if !others.isEmpty {
            text += Array(",".utf8) + JSONValue.object(others).bytes.dropFirst()
        } else {
            text += Array("}".utf8)
        }
        return Response(status: .ok, text: text, type: "application/json")
    }

    private static let stepBytes = 64 << 10
}
