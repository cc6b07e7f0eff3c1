import CarillonBasics
import CarillonExpression
package import CarillonWire
import Metrics
import Synchronization

/// Delivers firings to devices. Renders the notification of each subscription, and appends the notification to the device's
/// inbox. The subscription's new status and the push are written in the same transaction.
package final class Firings: Sendable {
    /// Returns the bytes of a rendered notification in the form that the vendor's push service receives.
    package typealias PayloadSize = @Sendable (_ notification: FiredNotification) -> Int

    let store: any SubscriptionStore
    let home: any LocalHome
    let others: OtherHomes
    private let conditions: ItemConditions
    private let styles: ValueStyles
    private let payloadSize: PayloadSize
    let time: TimeSource
    /// When ``notifyThrottled()`` last checked the clock for a backward step.
    let throttledSteps = BackwardSteps(toleranceSeconds: 0)
    private let templates = Mutex(LRUCache<TemplateKey, NotificationTemplate>(capacity: 500))

    let notified = ServerMetric.firings.counter("told")
    let late = ServerMetric.firings.counter("late")
    let full = ServerMetric.firings.counter("inbox_full")
    let throttled = ServerMetric.firings.counter("held")
    let conflated = ServerMetric.firings.counter("conflated")
    private let tooLarge = ServerMetric.notificationsTooLarge.counter()
    private let errors = ServerMetric.placeholderErrors.counter()

    package init(
        store: any SubscriptionStore, home: any LocalHome, others: OtherHomes, conditions: ItemConditions,
        styles: ValueStyles, payloadSize: @escaping PayloadSize, time: TimeSource
    ) {
        self.store = store
        self.home = home
        self.others = others
        self.conditions = conditions
        self.styles = styles
        self.payloadSize = payloadSize
        self.time = time
    }

    /// The number of targets in one step. At most half of a commit of the store.
    private static let atOnce = 256

    private struct TemplateKey: Hashable {
        var format: String
        var fields: [String]
    }

    /// Delivers the rest of a firing in steps. The store notes the progress of each step.
    ///
    /// - Parameter cost: The limit for the cost of all expressions of one notification together.
    @concurrent package func notify(_ stored: StoredFiring, cost: Int) async -> Notified {
        var result = Notified()
        do {
            var done = stored.done
            let targets = stored.firing.targets
            if done >= targets.count { try await store.advance(stored.number, to: nil, refused: []) }
            while done < targets.count {
                let end = min(done + Self.atOnce, targets.count)
                let refused = try await notify(Array(targets[done..<end]), of: stored, cost, &result)
                done = end
                try await store.advance(
                    stored.number, to: done < targets.count ? done : nil, refused: refused.crossings)
                // A step that could not be noted is repeated.
                result.pending += refused.all
            }
        } catch {
            result.fault = error
        }
        return result
    }

    package struct Notified: Sendable {
        /// Subscriptions that the engine must read again: their firing was not delivered, or they are also armed on other items.
        /// The value is whether the engine ends their cool-down.
        package var unsettled: [SubscriptionSerial: Bool] = [:]
        /// Targets whose firing was not delivered because the device is suspended or has reached a limit.
        package var pending: [Firing.Target] = []
        /// Why the rest was not delivered. Targets that were handled before the fault are not notified again.
        package var fault: (any Error)?
    }

    /// Targets of one step whose firing was not delivered.
    private struct Refused {
        var all: [Firing.Target] = []
        /// Crossings that exceeded a limit of the device. The store notes them, so that they are found again.
        var crossings: [Firing.Target] = []

        mutating func add(_ target: Firing.Target, _ policy: SubscriptionMachine.Policy) {
            all.append(target)
            if policy == .everyCrossing { crossings.append(target) }
        }
    }

    private func notify(
        _ targets: [Firing.Target], of stored: StoredFiring, _ cost: Int, _ result: inout Notified
    ) async throws -> Refused {
        var refused = Refused()
        let firing = stored.firing
        let subjects = try await store.subjects(targets.map(\.subscription))
        guard let bindings = conditions.bindings(firing.item.text, firing.state) else { return refused }
        for target in targets { result.unsettled[target.subscription] = true }
        let armed = Set(subjects.map(\.serial))
        refused.all = targets.filter { !armed.contains($0.subscription) }
        let revisions = Dictionary(targets.map { ($0.subscription, $0.revision) }, uniquingKeysWith: max)
        var rendered: [(subject: FiringSubject, firing: RenderedFiring)] = []
        for subject in subjects {
            guard let revision = revisions[subject.serial], let template = template(of: subject) else { continue }
            let target = Firing.Target(subscription: subject.serial, revision: revision)
            rendered.append((subject, render(target, template, subject, stored, bindings, cost)))
        }
        let waiting = try await throttlePaced(rendered, of: stored)
        var step = FiringStep(rendered.count)
        for (place, (subject, firing)) in rendered.enumerated() {
            guard waiting[subject.serial] == nil else {
                step.note(place, .dropped)
                continue
            }
            let now = time.now()
            let delivery = FiringDelivery(
                device: subject.device, app: subject.app, origin: subject.origin, notification: firing.notification,
                topic: topic(of: firing, of: stored), ttl: firing.ttl, isAlwaysPushed: firing.isAlwaysPushed,
                effect: .fired(firing.target, on: stored.firing.item, by: stored.number, at: now), at: now)
            deliver(delivery, place, of: &step)
        }
        let results = await results(of: step)
        for ((subject, fired), delivered) in zip(rendered, results) {
            switch waiting[subject.serial] {
            case .throttled?: result.unsettled[subject.serial] = nil
            case .full?, .late?:
                if waiting[subject.serial] == .full { refused.add(fired.target, subject.policy) }
                if case .every = subject.policy { result.unsettled[subject.serial] = false }
            case .due?, nil: break
            }
            guard waiting[subject.serial] == nil else { continue }
            switch delivered {
            case .stored, .answered, .sent:
                notified.increment()
                // The subscription may have other items, on which it must be disarmed.
                if subject.items == 1 || subject.policy != .once { result.unsettled[subject.serial] = nil }
            case .full:
                full.increment()
                refused.add(fired.target, subject.policy)
            case .failed(let fault): throw fault
            default:
                late.increment()
                // The subscription fired shortly before and is in its cool-down.
                if case .every = subject.policy { result.unsettled[subject.serial] = false }
            }
        }
        return refused
    }

    private func render(
        _ target: Firing.Target, _ template: NotificationTemplate, _ subject: FiringSubject, _ stored: StoredFiring,
        _ bindings: ExpressionBindings, _ cost: Int
    ) -> RenderedFiring {
        let firing = stored.firing
        let rendered = template.render(
            .init(
                subscription: subject.id, key: subject.key, item: firing.item, state: firing.state, bindings: bindings,
                reader: subject.reader), styles, cost: cost)
        errors.increment(by: rendered.errors)
        let notification = FiredNotification(
            subscription: subject.id, key: subject.key, item: firing.item.text,
            at: firing.state.updatedAt?.milliseconds ?? 0, notification: rendered.json)
        return RenderedFiring(
            target: target, notification: notification, ttl: template.ttl, isAlwaysPushed: template.isAlwaysPushed)
    }

    private func template(of subject: FiringSubject) -> NotificationTemplate? {
        let key = TemplateKey(format: subject.format, fields: subject.fields)
        if let known = templates.withLock({ $0[key] }) { return known }
        guard let json = JSONValue(parsing: Array(subject.format.utf8)), let format = try? NotificationFormat(json),
            let template = try? NotificationTemplate(format, over: subject.fields, in: conditions)
        else { return nil }
        templates.withLock { $0[key] = template }
        return template
    }

    private func topic(of firing: RenderedFiring, of stored: StoredFiring) -> String? {
        FiringCollapseKey.text(of: firing.notification, isDistinct: stored.firing.state.mode == .distinct)
    }

    /// - Parameter delivery: A delivery to a device of this home.
    func deliver(_ delivery: FiringDelivery, then: @escaping @Sendable (InboxResult) -> Void) {
        let (notification, now) = (delivery.notification, delivery.at)
        let body = notification.json.bytes
        var wake = notification.isShown ? WakeMode.alert : .background
        // The rest of a payload, without the texts, takes less than ``addedBytes``.
        let maySurpass = body.count + Self.addedBytes > SubscriptionLimits.payloadBytes
        let fit =
            wake == .alert && maySurpass
            ? NotificationShortening.fit(notification, within: SubscriptionLimits.payloadBytes, payloadSize) : .whole
        if fit == .tooLarge {
            tooLarge.increment()
            // A background push wakes the app, which finds the notification in its inbox.
            wake = .background
        }
        let rules = AppendRules(
            topic: delivery.topic, effects: [delivery.effect],
            wake: WakeRequest(
                wake, dueAt: now, isUnconditional: delivery.isAlwaysPushed && wake == .alert,
                needsAlertText: notification.privateKeys != nil, isShortened: fit == .shortened))
        let (urgency, countsBadge) = (notification.urgency, notification.countsBadge)
        let (device, app, origin) = (delivery.device, delivery.app, delivery.origin)
        let expiresAt = now.adding(seconds: delivery.ttl)
        // The closure captures the body and not the notification, to use less memory.
        home.deliver(to: device, .kept, rules: rules) { id in
            Envelope(
                id: id, device: device, app: app, origin: origin, kind: .fired(body: body, countsBadge: countsBadge),
                acceptedAt: now, expiresAt: expiresAt, urgency: urgency)
        } then: { _, delivered in
            then(delivered)
        }
    }

    private static let addedBytes = 1024
}

/// A rendered notification, with the options of its delivery.
struct RenderedFiring {
    var target: Firing.Target
    var notification: FiredNotification
    var ttl: Int64
    var isAlwaysPushed: Bool
}

extension FiredNotification {
    /// The urgency is high unless the format requests to save power.
    fileprivate var urgency: Urgency { notification["priority"] == .string("considerPower") ? .normal : .high }
}
