import CarillonWire

/// Notifies a channel of the state of its backend, by an envelope that replaces an earlier one that is still waiting.
package struct ChannelNotifier: Sendable {
    private let home: any LocalHome
    private let time: TimeSource

    package init(home: any LocalHome, time: TimeSource) {
        self.home = home
        self.time = time
    }

    /// Writes the envelope and the change of the watch in one transaction. Returns false if the change did not count any more. No
    /// envelope was written then.
    package func notify(_ change: PingMachine.Change, on watch: Watch, with effect: Effect) async throws -> Bool {
        let now = time.now()
        let rules = AppendRules(topic: Self.topic, effects: [effect])
        let delivered = await home.deliver(to: watch.device, .kept, rules: rules) { id in
            Envelope(
                id: id, device: watch.device, app: watch.app, origin: .channel(watch.channel, watch.channelID),
                kind: change.envelopeKind, acceptedAt: now, expiresAt: .never)
        }
        switch delivered {
        case .stored, .answered, .sent: return true
        case .failed(let fault): throw fault
        default: return false
        }
    }

    /// The collapse key. No sender can use this value.
    private static let topic = "watch:ping"
}

extension PingMachine.Change {
    fileprivate var envelopeKind: Envelope.Kind {
        switch self {
        case .pingFailed(let failure): .pingFailed(failure)
        case .recovered: .recovered
        }
    }
}
