import CarillonCore
import CarillonWire
import Testing

/// Values that tests of wakes are made of.
enum WakeSample {
    static let now = Timestamp(milliseconds: 1_700_000_000_000)
    static let queue = PushQueue(app: AppSerial(1), environment: .production)
    static let sandbox = PushQueue(app: AppSerial(1), environment: .sandbox)

    static let address = PushToken(stored: [0xAA]).map { PushAddress(token: $0, revision: 4) }

    static func envelope(_ position: Int64, ttl: Int64 = 100_000, at now: Timestamp = now) -> Envelope {
        var envelope = Sample.envelope(position)
        envelope.acceptedAt = now
        envelope.expiresAt = now.adding(seconds: ttl)
        return envelope
    }

    static func fired(_ position: Int64) -> Envelope {
        var envelope = envelope(position)
        envelope.kind = .fired(body: [1], countsBadge: true)
        return envelope
    }

    /// The facts of a device that can be reached.
    static func reach(_ wake: DeviceWake? = nil) -> PushReach { PushReach(queue: queue, wake: wake) }

    static func pace(_ unanswered: Int, pushed seconds: Int64) -> WakePace {
        WakePace(unanswered: unanswered, pushedAt: now.adding(seconds: seconds))
    }
}

extension WakeVerdict {
    /// The decision that there must be.
    func ruling() throws -> WakeRuling {
        guard case .decided(let ruling) = self else {
            Issue.record("more is asked: \(self)")
            throw Undecided()
        }
        return ruling
    }

    private struct Undecided: Error {}
}
