import CarillonBasics
import CarillonExpression
import CarillonWire
import Metrics

/// The items of apps, for the requests of publishers and operators.
package struct AppItems: Sendable {
    private let store: any SubscriptionStore
    private let documents: AppDocuments
    private let engine: ItemEngine
    private let rateLimits: RateLimits
    private let time: TimeSource
    private let deleted = ServerMetric.itemsDeleted.counter("requested")
    private let idleSearches = IdleSearches()
    private let collected = ServerMetric.itemsDeleted.counter("idle")

    package init(
        store: any SubscriptionStore, documents: AppDocuments, engine: ItemEngine, rateLimits: RateLimits, time: TimeSource
    ) {
        self.store = store
        self.documents = documents
        self.engine = engine
        self.rateLimits = rateLimits
        self.time = time
    }

    // MARK: Rules

    package func rules(of app: AppSerial) async throws -> ItemRules { try await revisedRules(of: app).rules }

    /// Returns the rules with the version of their document.
    func revisedRules(of app: AppSerial) async throws -> (rules: ItemRules, revision: Int64) {
        try await documents.itemRules(of: app)
    }

    /// Sets the rules of an app. ``SubscriptionRegistrar/setRules(_:of:)`` also ends the subscriptions on items that the rules
    /// close.
    ///
    /// - Returns: The version of the document.
    @discardableResult package func setRules(_ rules: ItemRules, of app: AppSerial) async throws -> Int64 {
        let key = AppDocument.Key(.itemRules, of: app)
        guard let version = try await documents.put(rules.json.bytes, as: key, at: time.now()) else {
            throw Refusal(.appUnknown, "The app was deleted.")
        }
        return version.rawValue
    }

    // MARK: Updates

    /// Accepts an update of an item. Returns when the item and the firings of the update are stored durably.
    ///
    /// - Parameter fields: The fields as the publisher wrote them, not converted to the types of the rules.
    package func publish(
        _ fields: [WrittenField], place: ItemUpdate.Place? = nil, to name: ItemName, of app: AppSerial
    ) async throws -> ItemReceipt {
        try rateLimits.takeUpdate(of: app)
        let update = try Self.update(fields, place, name, of: app, try await rules(of: app))
        return try await engine.publish(update.update, to: update.key, mode: update.mode)
    }

    /// Accepts several updates in their order. A refused update does not affect the others.
    package func publish(
        _ updates: [(item: ItemName, fields: [WrittenField], place: ItemUpdate.Place?)], of app: AppSerial
    ) async -> [Result<ItemReceipt, any Error>] {
        let rules: ItemRules
        do {
            rules = try await self.rules(of: app)
        } catch {
            return updates.map { _ in .failure(error) }
        }
        var results: [Result<ItemReceipt, any Error>?] = []
        var published: [PublishedUpdate] = []
        for update in updates {
            do {
                try rateLimits.takeUpdate(of: app)
                published.append(try Self.update(update.fields, update.place, update.item, of: app, rules))
                results.append(nil)
            } catch {
                results.append(.failure(error))
            }
        }
        var answers = await engine.publish(published)[...]
        return results.map { $0 ?? answers.removeFirst() }
    }

    private static func update(
        _ fields: [WrittenField], _ place: ItemUpdate.Place?, _ name: ItemName, of app: AppSerial, _ rules: ItemRules
    ) throws(Refusal) -> PublishedUpdate {
        let rule = rules.rule(for: name)
        var values: [String: ItemValue] = [:]
        for field in fields { values[field.name] = try field.value(as: rule.fields[field.name]) }
        guard values.count == fields.count else { throw Refusal(.fieldInvalid, "A field appears twice.") }
        guard values.count <= ItemLimits.fields else {
            throw Refusal(.itemTooLarge, "An item can have up to \(ItemLimits.fields) fields.")
        }
        return PublishedUpdate(ItemUpdate(values, place: place), to: ItemKey(app: app, name: name), mode: rule.mode)
    }

    package func item(_ name: ItemName, of app: AppSerial) async throws -> StoredItem {
        guard let item = try await engine.item(of: ItemKey(app: app, name: name)) else { throw Self.unknown(name) }
        return item
    }

    private static func unknown(_ name: ItemName) -> Refusal {
        Refusal(.itemUnknown, "The app has no item \"\(name)\"; publish an update to create it.")
    }

    /// Returns items whose names begin with a prefix, in the order of their names.
    package func list(
        of app: AppSerial, prefix: String, after name: String, limit: Int
    ) async throws -> [ListedItem] {
        try await store.items(of: app, prefix: prefix, after: name, limit: limit)
    }

    // MARK: Deleting

    /// Deletes an item: its values, the positions of its sources, and its firings that were not delivered. Subscriptions stay;
    /// the next update of the item is its first.
    package func delete(_ name: ItemName, of app: AppSerial) async throws {
        try rateLimits.takeUpdate(of: app)
        guard try await engine.delete(ItemKey(app: app, name: name)) else { throw Self.unknown(name) }
        deleted.increment()
    }

    /// Deletes the items of this home that have no subscription and that had no update for the `idleSeconds` of their rule.
    ///
    /// - Parameter onlyDue: Leaves out apps whose items were searched recently, compared with the shortest `idleSeconds` of their
    ///   rules.
    package func deleteIdle(at now: Timestamp, onlyDue: Bool = false) async throws {
        var fault: (any Error)?
        let apps = try await documents.apps(with: .itemRules).values.sorted { $0.rawValue < $1.rawValue }
        for app in apps where !Task.isCancelled {
            do {
                let shortest = try await rules(of: app).rules.compactMap(\.idleSeconds).min()
                guard let shortest, !onlyDue || idleSearches.begin(app, shortestIdle: shortest, at: now) else { continue }
                try await deleteIdle(of: app, at: now)
            } catch {
                fault = error
            }
        }
        if let fault { throw fault }
    }

    private func deleteIdle(of app: AppSerial, at now: Timestamp) async throws {
        let rules = try await rules(of: app)
        guard let shortest = rules.rules.compactMap(\.idleSeconds).min() else { return }
        var place: String? = ""
        while let start = place, !Task.isCancelled {
            let part = try await store.unwatchedItems(
                of: app, updatedBy: now.adding(seconds: -Int64(shortest)), after: start, limit: Self.atOnce)
            for item in part.items {
                let key = ItemKey(app: app, name: item.name)
                guard engine.has(key), let seconds = rules.rule(for: item.name).idleSeconds else { continue }
                let moment = now.adding(seconds: -Int64(seconds))
                guard item.updatedAt <= moment else { continue }
                if try await engine.delete(key, ifIdleSince: moment) { collected.increment() }
            }
            place = part.end
        }
    }

    private static let atOnce = 1000
}

/// A field in the form that the publisher sent.
package struct WrittenField: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
        case null
        case bool(Bool)
        case string(String)
        /// The digits of the number.
        case number(String)
    }

    package var name: String
    package var value: Value

    package init(_ name: String, _ value: Value) {
        self.name = name
        self.value = value
    }

    func value(as field: ItemRules.Field?) throws(Refusal) -> ItemValue {
        guard (1...ItemLimits.fieldNameBytes).contains(name.utf8.count) else {
            throw Refusal(.fieldInvalid, "The name of a field must have 1 to \(ItemLimits.fieldNameBytes) bytes.")
        }
        let type = field?.type
        switch (value, type) {
        case (.null, _): return ItemValue(.null)
        case (.bool(let value), nil), (.bool(let value), .bool): return ItemValue(.bool(value))
        case (.string(let text), nil), (.string(let text), .string):
            let most = field?.maxBytes ?? ItemLimits.valueBytes
            guard text.utf8.count <= most else {
                throw Refusal(.fieldInvalid, "The field \"\(name)\" must have at most \(most) bytes.")
            }
            return ItemValue(.string(text))
        case (.string(let text), .timestamp): if let time = ExpressionTimestamp(text) { return ItemValue(.timestamp(time)) }
        case (.number(let digits), _) where digits.utf8.count <= Self.longestNumber:
            if let value = Self.number(digits, type) { return ItemValue(value, digits: digits) }
        default: break
        }
        throw Refusal(
            .fieldInvalid,
            "The field \"\(name)\" must be null, or \(type.map { "of type \($0.rawValue)" } ?? "a finite number").")
    }

    private static func number(_ digits: String, _ type: ItemRules.FieldType?) -> ExpressionValue? {
        switch type {
        case nil, .double:
            guard let number = Double(digits), number.isFinite else { return nil }
            return .double(number)
        case .int: return (Int64(digits) ?? WholeNumber.value(of: digits.utf8)).map { ExpressionValue.int($0) }
        case .uint: return (UInt64(digits) ?? WholeNumber.value(of: digits.utf8)).map { ExpressionValue.uint($0) }
        case .bool, .string, .timestamp: return nil
        }
    }

    private static let longestNumber = 64
}
