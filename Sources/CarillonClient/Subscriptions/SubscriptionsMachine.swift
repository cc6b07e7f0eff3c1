import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The subscriptions of the app and of the server. The machine sends requests on the live session, one at a time.
///
/// Its inputs are facts, and its outputs are actions. An entry is one object of the app, by its number, or a subscription that
/// was found on the server. A request without a response is repeated at the next connection, except for a new subscription
/// without a key, which would be made twice: it fails.
struct SubscriptionsMachine: Sendable {
    struct Entry: Equatable, Sendable {
        var definition: SubscriptionDefinition
        var status = NotificationSubscription.Status.unknown
        var statusAt: Int64?
        var id: String?
        var actual: SubscriptionDefinition?
        /// The changes of the app that were not sent to the server yet.
        var changed: Set<Change> = []
        /// Whether the server may have the subscription, because it was sent.
        var wasSent = false
        /// Whether the former subscription with the same key, on other items or fields, was removed for this one.
        var wasReplaced = false
    }

    enum Change: Hashable, Sendable {
        case trigger
        case format

        var property: NotificationSubscription.Property { self == .trigger ? .triggerExpression : .notificationFormat }
    }

    enum Filter: Equatable, Sendable {
        case all
        case status(NotificationSubscription.Status)
    }

    private typealias Operation = SubscriptionOperation

    enum Action: Equatable, Sendable {
        case send(ClientFrame.Request)
        /// The new state of an entry, and its events.
        case notify(Int, Entry, [NotificationSubscriptionEvent])
        /// A subscription that the app did not make was found on the server.
        case found(Int, Entry)
        /// The entry was removed, or another entry replaces it.
        case removed(Int)
        /// All subscriptions on the server are known.
        case listed
        /// Call ``timePassed()`` after this many seconds.
        case wait(seconds: Int)
        /// Register the device and connect.
        case connect
    }

    private(set) var entries: [Int: Entry] = [:]
    private var nextNumber = 0
    private var nextID = 0
    private var operations: [Operation] = []
    private var underWay: (id: Int, operation: Operation)?
    /// Whether the server supports subscriptions; nil without a connection.
    private var isSupported: Bool?
    private var isWaiting = false
    /// Whether the app requested the subscriptions, which are listed at each connection then.
    private var isRequested = false
    /// The entries that the app declared to be all that have a key.
    private var declared: [Int]?
    private var seen: Set<Int> = []
    /// Whether the server was restored from a backup, until its whole list was read. Subscriptions that the server lost are made
    /// again, and earlier values are changed again.
    private var isRestored = false

    private static let requestVersion = 3
    private static let retrySeconds = 5

    // MARK: Inputs from the app

    /// The app uses the subscriptions.
    mutating func requested() -> [Action] {
        guard !isRequested else { return [] }
        isRequested = true
        return refreshed()
    }

    /// The app requests the present subscriptions.
    mutating func refreshed() -> [Action] {
        isRequested = true
        let isQueued = operations.contains { if case .list = $0 { true } else { false } }
        return isSupported == true && !isQueued ? enqueue(.list(after: nil)) : []
    }

    mutating func subscribed(_ definition: SubscriptionDefinition) -> (number: Int, actions: [Action]) {
        nextNumber += 1
        let number = nextNumber
        entries[number] = Entry(definition: definition)
        return (number, set(number, .active) + enqueue(.put(number)) + (isSupported == nil ? [.connect] : []))
    }

    /// The app declares all subscriptions that have a key.
    mutating func declared(_ definitions: [SubscriptionDefinition]) -> (numbers: [Int], actions: [Action]) {
        // Entries of the former declaration that the server never had are removed here. The list removes the others.
        var actions = (declared ?? []).filter { entries[$0]?.id == nil }.flatMap { removeEnded($0) }
        var numbers: [Int] = []
        for definition in definitions {
            nextNumber += 1
            numbers.append(nextNumber)
            entries[nextNumber] = Entry(definition: definition)
            actions += set(nextNumber, .active)
        }
        declared = numbers
        operations.removeAll { $0 == .compare }
        return (numbers, actions + enqueue(.compare) + (isSupported == nil ? [.connect] : []))
    }

    /// The app declares the object of an entry anew.
    mutating func dropped(_ number: Int) {
        entries[number] = nil
        declared?.removeAll { $0 == number }
        operations.removeAll { $0.number == number }
    }

    mutating func unsubscribed(_ number: Int) -> [Action] {
        guard let entry = entries[number] else { return [] }
        let isDeclared = declared?.contains(number) == true
        declared?.removeAll { $0 == number }
        operations.removeAll { $0.number == number }
        // The server never had the subscription.
        if entry.id == nil, !entry.wasSent, !isDeclared { return removeEnded(number) }
        return enqueue(.remove(number))
    }

    mutating func unsubscribedMany(_ filter: Filter) -> [Action] { enqueue(.removeMany(filter)) }

    /// Several waiting changes are sent as one, with the last value of each property.
    mutating func changed(_ number: Int, _ change: Change, _ definition: SubscriptionDefinition) -> [Action] {
        guard entries[number] != nil else { return [] }
        entries[number]?.definition = definition
        // A subscription that is not sent yet is sent with its definition at that time.
        if operations.contains(.put(number)) {
            return [.notify(number, entries[number] ?? Entry(definition: definition), [])]
        }
        entries[number]?.changed.insert(change)
        let isQueued = operations.contains { if case .change(number, _) = $0 { true } else { false } }
        let notifications: [Action] = entries[number].map { [.notify(number, $0, [])] } ?? []
        return notifications + (isQueued ? [] : enqueue(.change(number, [])))
    }

    // MARK: Inputs from the connection

    /// - Parameter isRestored: Whether the server was restored from a backup, and may have lost subscriptions.
    mutating func connected(version: Int, isRestored: Bool = false) -> [Action] {
        self.isRestored = (self.isRestored || isRestored) && entries.contains { $0.value.id != nil }
        isSupported = version >= Self.requestVersion
        isWaiting = false
        guard isSupported == true else { return refuseAll() }
        operations.removeAll { if case .list = $0 { true } else { false } }
        if declared != nil {
            // The declaration is repeated at each connection, for any device. A list follows it.
            operations.removeAll { $0 == .compare }
            operations.insert(.compare, at: 0)
        } else if isRequested || self.isRestored {
            operations.insert(.list(after: nil), at: 0)
        }
        return next()
    }

    private mutating func refuseAll() -> [Action] {
        let asked = operations
        operations = []
        let error = PushError(.serverTooOld, "The server is of a version that has no subscriptions.")
        return asked.flatMap { operation in failed(operation, error) }
    }

    mutating func disconnected() -> [Action] {
        isSupported = nil
        isWaiting = false
        guard let (_, operation) = underWay else { return [] }
        underWay = nil
        if case .put(let number) = operation, let entry = entries[number], entry.definition.key == nil {
            return failed(operation, PushError(.interrupted, "The connection ended before the server's answer."))
        }
        requeue(operation)
        return []
    }

    /// - Parameter isLast: Whether a `put` is repeated after the waiting operations. Other operations are repeated before them.
    private mutating func requeue(_ operation: Operation, isLast: Bool = false) {
        switch operation {
        case .change(let number, let changes):
            entries[number]?.changed.formUnion(changes)
            let isQueued = operations.contains { if case .change(number, _) = $0 { true } else { false } }
            if !isQueued { operations.insert(.change(number, []), at: 0) }
        // The app removed the subscription meanwhile.
        case .put(let number) where operations.contains(.remove(number)): break
        case .put where isLast: operations.append(operation)
        default: operations.insert(operation, at: 0)
        }
    }

    /// The device was signed out: all subscriptions and operations are removed.
    mutating func signedOut() -> [Action] {
        (operations, underWay, declared) = ([], nil, nil)
        return entries.keys.sorted().flatMap { removeEnded($0) }
    }

    /// The server does not know the device any more, or the device has another user: the server has none of its subscriptions.
    mutating func deviceLost() -> [Action] {
        operations.removeAll { operation in
            switch operation {
            case .put, .compare: false
            default: true
            }
        }
        let waiting = Set(operations.compactMap { if case .put(let number) = $0 { number } else { nil } })
        var actions: [Action] = []
        for number in entries.keys.sorted() where !waiting.contains(number) {
            if declared?.contains(number) == true {
                entries[number]?.id = nil
                entries[number]?.actual = nil
                actions += set(number, .active)
            } else {
                actions += removeEnded(number)
            }
        }
        if declared != nil, !operations.contains(.compare) { operations.append(.compare) }
        return actions + (operations.isEmpty ? [] : [.connect])
    }

    mutating func timePassed() -> [Action] {
        isWaiting = false
        return next()
    }

    // MARK: Requests

    private mutating func enqueue(_ operation: Operation) -> [Action] {
        if isSupported == false {
            return failed(operation, PushError(.serverTooOld, "The server is of a version that has no subscriptions."))
        }
        operations.append(operation)
        return next()
    }

    private mutating func next() -> [Action] {
        var actions: [Action] = []
        while isSupported == true, underWay == nil, !isWaiting, !operations.isEmpty {
            var operation = operations.removeFirst()
            if case .change(let number, let before) = operation {
                // The request waits until the id of the subscription is known.
                guard entries[number]?.id != nil else { continue }
                operation = .change(number, before.union(entries[number]?.changed ?? []))
                entries[number]?.changed = []
            }
            guard let request = request(of: operation) else {
                if case .remove(let number) = operation { actions += removeEnded(number) }
                continue
            }
            guard ClientFrame.request(request).text.count <= Limits.clientFrameBytes else {
                let error = PushError(
                    .subscriptionInvalid,
                    "What is said to the server at once may have \(Limits.clientFrameBytes) bytes.")
                actions += failed(operation, error)
                continue
            }
            if case .put(let number) = operation { entries[number]?.wasSent = true }
            underWay = (request.id, operation)
            return actions + [.send(request)]
        }
        return actions
    }

    private mutating func request(of operation: Operation) -> ClientFrame.Request? {
        nextID += 1
        if operation == .list(after: nil) { seen = [] }
        return operation.request(id: nextID, about: entries, declared)
    }

    // MARK: Responses

    mutating func answered(_ answer: ServerFrame.Answer) -> [Action] {
        guard let (id, operation) = underWay, id == answer.id else { return [] }
        underWay = nil
        switch answer.status {
        case 200..<300: return succeeded(operation, answer.body) + next()
        case 429, 500...:
            if answer.status != 429, case .put(let number) = operation, entries[number]?.definition.key == nil {
                // The server may have made the subscription, which must not be made twice.
                return failed(operation, PushError(.serverUnavailable, "The server answered \(answer.status).")) + next()
            }
            // The operation is repeated after a while. An operation that may take long, because the server calls an approval hook,
            // does not delay others.
            requeue(operation, isLast: answer.status != 429)
            isWaiting = true
            return [.wait(seconds: Self.retrySeconds)]
        case 409 where replaces(operation, answer.body):
            return next()
        case 404:
            // The subscription ended meanwhile.
            if let number = operation.number, entries[number]?.id != nil { return removeEnded(number) + next() }
            // The position in the list does not exist any more. The list is requested from its beginning.
            if case .list(.some) = operation {
                operations.insert(.list(after: nil), at: 0)
                return next()
            }
            fallthrough
        default:
            let body = JSONValue(parsing: answer.body)
            func text(_ name: String) -> String? { if case .string(let text)? = body?[name] { text } else { nil } }
            let detail = text("detail") ?? "The server answered \(answer.status)."
            let error = PushError(
                .subscriptionRefused, text("code").map { "\($0): \(detail)" } ?? detail, serverCode: text("code"),
                appCode: text("appCode"))
            return failed(operation, error) + next()
        }
    }

    /// Returns whether a declared subscription must replace the one with the same key on the server. Its items and fields cannot
    /// be changed.
    private mutating func replaces(_ operation: Operation, _ answer: [UInt8]) -> Bool {
        guard case .put(let number) = operation, declared?.contains(number) == true, entries[number]?.wasReplaced == false,
            JSONValue(parsing: answer)?["code"] == .string(ErrorCode.subscriptionFrozen.rawValue)
        else { return false }
        entries[number]?.wasReplaced = true
        operations.insert(contentsOf: [.removeKey(number), .put(number)], at: 0)
        return true
    }

    private mutating func succeeded(_ operation: Operation, _ answer: [UInt8]) -> [Action] {
        switch operation {
        case .put(let number):
            guard let body: SubscriptionBody = Self.decode(answer) else { return failed(operation, Self.unreadable) }
            return take(body, as: number)
        case .change(let number, let changes):
            guard let body: SubscriptionBody = Self.decode(answer) else { return failed(operation, Self.unreadable) }
            return take(body, as: number, changes.map(\.property).sorted { $0.rawValue < $1.rawValue })
        case .remove(let number): return removeEnded(number)
        case .removeKey: return []
        case .removeMany: return enqueue(.list(after: nil))
        case .compare:
            guard case .array(let keys)? = JSONValue(parsing: answer)?["wanted"], let declared else { return [] }
            let requested = Set(keys.compactMap { if case .string(let key) = $0 { key } else { nil } })
            let puts = declared.filter { number in
                entries[number]?.definition.key.map(requested.contains) == true && !operations.contains(.put(number))
            }
            // The server has the others, which the list will contain. Both requests come before later requests of the app.
            operations.insert(contentsOf: puts.map { .put($0) } + [.list(after: nil)], at: 0)
            return []
        case .list: return listed(answer)
        }
    }

    private static func decode<Body: Decodable>(_ answer: [UInt8]) -> Body? {
        try? JSONDecoder().decode(Body.self, from: Data(answer))
    }

    private static let unreadable = PushError(.protocolViolated, "The server answered with a body that is no subscription.")

    private mutating func listed(_ answer: [UInt8]) -> [Action] {
        guard let list: SubscriptionList = Self.decode(answer) else { return [] }
        var actions: [Action] = []
        for body in list.subscriptions {
            let number: Int
            if let waiting = entries.first(where: {
                $0.value.id == nil && $0.value.definition.key != nil && $0.value.definition.key == body.key
                    && !operations.contains(.put($0.key))
            })?.key {
                // The app's latest definition replaces the listed one.
                number = waiting
            } else if let known = entries.first(where: { $0.value.id == body.id })?.key {
                number = known
            } else if declared == nil, !isRequested {
                // The app does not use other subscriptions.
                continue
            } else {
                nextNumber += 1
                number = nextNumber
                let definition = SubscriptionDefinition(body)
                let entry = Entry(definition: definition)
                entries[number] = entry
                actions.append(.found(number, entry))
            }
            seen.insert(number)
            actions += take(body, as: number)
        }
        if let next = list.next {
            operations.insert(.list(after: next), at: 0)
            return actions
        }
        // Entries that are not in the list have ended.
        for number in entries.keys.sorted() where !seen.contains(number) {
            let isKnown = entries[number]?.id != nil || declared?.contains(number) == true
            if isKnown, isRestored, !operations.contains(where: { $0.number == number }) {
                actions += recreate(number)
                continue
            }
            if isKnown, !operations.contains(.put(number)), !operations.contains(.compare) { actions += removeEnded(number) }
        }
        isRestored = false
        return actions + [.listed]
    }

    /// The server lost an entry, which is made again.
    private mutating func recreate(_ number: Int) -> [Action] {
        entries[number]?.id = nil
        entries[number]?.actual = nil
        entries[number]?.changed = []
        operations.append(.put(number))
        return set(number, .active)
    }

    /// Stores the server's state of an entry.
    private mutating func take(
        _ body: SubscriptionBody, as number: Int, _ properties: [NotificationSubscription.Property] = []
    ) -> [Action] {
        guard var entry = entries[number] else { return [] }
        var actions: [Action] = []
        // Each subscription has one entry: this entry replaces the others with the same id.
        for (other, present) in entries where other != number && present.id == body.id {
            entries[other] = nil
            var replaced = present
            (replaced.status, replaced.statusAt, replaced.id) = (.unknown, nil, nil)
            actions += [.notify(other, replaced, [.statusChanged(.unknown)]), .removed(other)]
        }
        seen.insert(number)
        let actual = SubscriptionDefinition(body)
        var events: [NotificationSubscriptionEvent] = []
        var changed = properties
        if let before = entry.actual {
            // After a restore the server has earlier values, which are changed again.
            if isRestored, before.trigger != actual.trigger { entry.changed.insert(.trigger) }
            if isRestored, before.format != actual.format { entry.changed.insert(.format) }
            if before.trigger != actual.trigger, !changed.contains(.triggerExpression) { changed.append(.triggerExpression) }
            if before.format != actual.format, !changed.contains(.notificationFormat) { changed.append(.notificationFormat) }
            if before.policy != actual.policy { changed.append(.policy) }
            if before.maxFrequency != actual.maxFrequency { changed.append(.requestedMaxFrequency) }
            if before.bufferSize != actual.bufferSize { changed.append(.requestedBufferSize) }
            if before.tags != actual.tags { changed.append(.tags) }
            if before.expiresAt != actual.expiresAt { changed.append(.expiresAt) }
        }
        let statusAt = Timestamp3339.milliseconds(body.statusAt)
        if entry.status != .active, entry.id != nil, entry.statusAt != statusAt { changed.append(.statusTimestamp) }
        entry.id = body.id
        entry.actual = actual
        entry.statusAt = statusAt
        let status = NotificationSubscription.Status(rawValue: body.status) ?? .subscribed
        let before = entry.status
        entry.status = status
        entries[number] = entry
        if before != status {
            events.append(.statusChanged(status))
            if before == .active || before == .unknown { events.append(.subscribed) }
            if status == .triggered { events.append(.triggered) }
        }
        events += changed.map { .propertyChanged($0) }
        // Sends the changes that the app made before the id of the subscription was known.
        let isQueued = operations.contains { if case .change(number, _) = $0 { true } else { false } }
        if !entry.changed.isEmpty, !isQueued { operations.append(.change(number, [])) }
        return actions + [.notify(number, entry, events)]
    }

    /// A subscription fired.
    ///
    /// - Parameter isNotified: Whether listeners receive ``NotificationSubscriptionEvent/triggered``. The status changes in any
    ///   case.
    mutating func fired(_ id: String, at milliseconds: Int64, isNotified: Bool = true) -> [Action] {
        guard let number = entries.first(where: { $0.value.id == id })?.key, let entry = entries[number] else { return [] }
        let triggered: [NotificationSubscriptionEvent] = isNotified ? [.triggered] : []
        guard entry.actual?.policy == .once, entry.status == .subscribed else {
            return isNotified ? [.notify(number, entry, triggered)] : []
        }
        entries[number]?.status = .triggered
        entries[number]?.statusAt = milliseconds
        let events: [NotificationSubscriptionEvent] = [.statusChanged(.triggered)] + triggered
        return entries[number].map { [.notify(number, $0, events)] } ?? []
    }

    // MARK: Ends of entries

    private mutating func set(_ number: Int, _ status: NotificationSubscription.Status) -> [Action] {
        entries[number]?.status = status
        entries[number]?.statusAt = nil
        return entries[number].map { [.notify(number, $0, [.statusChanged(status)])] } ?? []
    }

    /// Removes an entry that has ended.
    private mutating func removeEnded(_ number: Int) -> [Action] {
        guard var entry = entries.removeValue(forKey: number) else { return [] }
        declared?.removeAll { $0 == number }
        operations.removeAll { $0.number == number }
        (entry.status, entry.statusAt, entry.id, entry.actual) = (.unknown, nil, nil, nil)
        return [.notify(number, entry, [.statusChanged(.unknown), .unsubscribed]), .removed(number)]
    }

    private mutating func failed(_ operation: Operation, _ error: PushError) -> [Action] {
        switch operation {
        // If the former subscription still exists, the `put` that follows is rejected.
        case .removeKey: return []
        case .put(let number):
            guard var entry = entries.removeValue(forKey: number) else { return [] }
            declared?.removeAll { $0 == number }
            (entry.status, entry.statusAt) = (.unknown, nil)
            return [.notify(number, entry, [.subscriptionFailed(error), .statusChanged(.unknown)]), .removed(number)]
        case .change(let number, let changes):
            guard var entry = entries[number] else { return [] }
            // The properties keep the server's values.
            if let actual = entry.actual {
                let left = changes.subtracting(entry.changed)
                if left.contains(.trigger) { entry.definition.trigger = actual.trigger }
                if left.contains(.format) { entry.definition.format = actual.format }
            }
            entries[number] = entry
            let properties = changes.map(\.property).sorted { $0.rawValue < $1.rawValue }
            return [.notify(number, entry, properties.map { .modificationFailed($0, error) })]
        case .remove(let number):
            return entries[number].map { [.notify(number, $0, [.unsubscriptionFailed(error)])] } ?? []
        case .removeMany(let filter):
            return entries.keys.sorted().flatMap { number -> [Action] in
                guard let entry = entries[number], filter.matches(entry.status) else { return [] }
                return [.notify(number, entry, [.unsubscriptionFailed(error)])]
            }
        case .compare: return (declared ?? []).flatMap { failed(.put($0), error) }
        case .list: return []
        }
    }
}

extension SubscriptionsMachine.Filter {
    func matches(_ status: NotificationSubscription.Status) -> Bool {
        switch self {
        case .all: status == .subscribed || status == .triggered
        case .status(let requested): status == requested
        }
    }
}
