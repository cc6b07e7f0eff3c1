import CarillonBasics
import CarillonWire
import Metrics
import Synchronization

/// Stores firings that exceed their subscription's pace, and delivers them when they are due.
extension Firings {
    /// Returns the results for firings of subscriptions with a pace. Firings that must be delivered now are left out.
    func throttlePaced(
        _ rendered: [(subject: FiringSubject, firing: RenderedFiring)], of stored: StoredFiring
    ) async throws -> [SubscriptionSerial: ThrottleResult] {
        let firings = rendered.compactMap { subject, firing -> ThrottledFiring? in
            // The subscription fires only once, so its firing is not throttled.
            guard let pace = subject.pace, subject.policy != .once else { return nil }
            return ThrottledFiring(
                target: firing.target, device: subject.device, item: stored.firing.item, number: stored.number,
                body: firing.notification.json.bytes, ttl: firing.ttl, isAlwaysPushed: firing.isAlwaysPushed,
                isDistinct: stored.firing.state.mode == .distinct, milliseconds: pace.milliseconds,
                buffer: pace.buffer(of: stored.firing.state.mode))
        }
        guard !firings.isEmpty else { return [:] }
        var results: [SubscriptionSerial: ThrottleResult] = [:]
        for (firing, result) in zip(firings, try await store.throttle(firings, at: time.now())) {
            switch result {
            case .due: continue
            case .throttled(let insteadOf):
                throttled.increment()
                conflated.increment(by: insteadOf)
            case .full: conflated.increment()
            case .late: late.increment()
            }
            results[firing.target.subscription] = result
        }
        return results
    }

    /// Delivers due firings. Returns when the next firing is due; nil if no firing waits.
    package func notifyThrottled() async throws -> Timestamp? {
        let now = time.now()
        // In all shards: see ``LocalHome/shards``.
        try await throttledSteps.follow(now) { _ in try await store.bringBackThrottled(in: .all, at: now) }
        while !Task.isCancelled {
            let due = try await store.dueFirings(in: home.shards, at: time.now(), limit: Self.throttledAtOnce)
            guard !due.isEmpty else { break }
            let now = time.now()
            var step = FiringStep(due.count)
            for (place, firing) in due.enumerated() {
                guard let notification = JSONValue(parsing: firing.body).flatMap(FiredNotification.init) else {
                    step.note(place, .dropped)
                    continue
                }
                let delivery = FiringDelivery(
                    device: firing.device, app: firing.app, origin: firing.origin, notification: notification,
                    topic: FiringCollapseKey.text(of: notification, isDistinct: firing.isDistinct), ttl: firing.ttl,
                    isAlwaysPushed: firing.isAlwaysPushed, effect: .throttledNotified(firing.number, at: now), at: now)
                deliver(delivery, place, of: &step)
            }
            var vain: [Int64] = []
            var fault: StoreFault?
            for (firing, delivered) in zip(due, await results(of: step)) {
                switch delivered {
                case .stored, .answered, .sent: notified.increment()
                case .full:
                    full.increment()
                    vain.append(firing.number)
                case .failed(let why): fault = why
                default:
                    late.increment()
                    vain.append(firing.number)
                }
            }
            if !vain.isEmpty { try await store.dropThrottled(vain, at: time.now()) }
            if let fault { throw fault }
        }
        return try await store.nextThrottledFiring(in: home.shards)
    }

    private static let throttledAtOnce = 256
}
