package import CarillonExpression

/// Finds the conditions of an item that start to hold with an update.
///
/// Equal conditions are stored once. The comparisons of a condition with constants are indexed in ``TermKeys``. An update
/// evaluates each compared expression once, visits the constants between the values before and after the update, and counts for
/// each alternative how many of its terms hold. The other parts of a condition are evaluated only if its comparisons hold. The
/// cost of an update therefore depends on the changes that it causes, and not on the number of subscriptions.
///
/// The index contains only armed subscriptions. The caller removes a subscription when it has stored its last firing.
package struct ItemIndex {
    /// When a subscription fires.
    package enum Policy: UInt8, Sendable {
        /// Fires when the condition holds. The caller then removes the subscription.
        case once
        /// Fires when the condition holds and did not hold before.
        case everyCrossing
        /// Fires with each update after which the condition holds.
        case every
    }

    /// Identifies a subscription in the index until it is removed.
    package struct Handle: Hashable, Sendable {
        let number: Int32
    }

    package struct Fired: Equatable, Sendable {
        package let handle: Handle
        /// The number that the caller passed to ``ItemIndex/add(_:_:shape:constants:wasWatched:owner:)``.
        package let subscription: Int64
    }

    package struct Outcome: Sendable {
        package var fired: [Fired] = []
        /// The number of conditions that had no value.
        package var errors = 0
        /// The number of evaluations that ended because they exceeded the cost limit.
        package var overCost = 0
    }

    private struct Subscriber {
        var subscription: Int64
        var condition: Int32
        var next: Int32 = -1
        var previous: Int32 = -1
        /// Differs each time that the slot is used.
        var stamp: UInt32
        var policy: Policy
        /// Whether the subscription fired while the condition holds, or was armed while it held. It cannot fire until the
        /// condition does not hold.
        var isQuiet = false
        /// Whether the subscription was not evaluated since it was added, or must fire again because its firing was not stored.
        var isFresh = true
    }

    private struct Condition {
        var shape: Int32
        /// The number of the first constant.
        var constants: Int32
        var alternatives: Int32
        var subscribers: Int32 = -1
        /// The number of alternatives whose terms all hold.
        var full: Int32 = 0
        var holds = false
        /// Whether the number changed in this update, so that the condition must be checked.
        var isTouched = false
        /// The indexes in `evaluated` and in `lasting`; -1 if the condition is not in the list.
        var evaluatedAt: Int32 = -1
        var lastingAt: Int32 = -1
        /// The number of subscribers that fire with each update.
        var lasting: Int32 = 0
        var owner = ConditionOwner.several
    }

    private struct Alternative {
        var condition: Int32
        var postings: Int32
        var terms: Int32
        var holding: Int32 = 0
    }

    /// A term of an alternative, in the list of terms with the same constant.
    private struct Posting {
        var alternative: Int32
        var next: Int32 = -1
        var previous: Int32 = -1
    }

    private let shapes: ConditionShapes
    private var bindings: ExpressionBindings?
    /// The highest cost of evaluating one condition, or one expression that conditions compare.
    package var costLimit = Int.max
    private var subscribers = Slots<Subscriber>()
    private var conditions = Slots<Condition>()
    private var alternatives = Slots<Alternative>()
    private var postings = Slots<Posting>()
    private var constants = Slots<ExpressionValue>()
    /// Conditions by the hash of shape and constants. If two conditions have the same hash, the second is not found.
    private var equal: [UInt64: Int32] = [:]
    private var keys: [Int: [TermKeys.Comparison: TermKeys]] = [:]
    /// The values of the compared expressions after the last update.
    private var values: [Int: ExpressionValue] = [:]
    private var evaluated: [Int32] = []
    private var lasting: [Int32] = []
    /// Subscriptions that were added recently. Some may have been removed.
    private var fresh: [(number: Int32, stamp: UInt32)] = []
    private var stamp: UInt32 = 0
    private var touched: [Int32] = []
    private var usages = ConditionUsages()
    /// Subscriptions without a condition.
    private var unconditional: [Int32] = []
    /// The number of evaluations that exceeded the cost limit while conditions were armed.
    private var armedOverCost = 0

    /// - Parameter bindings: The values after the last update; nil before the first.
    package init(_ shapes: ConditionShapes, at bindings: ExpressionBindings? = nil) {
        self.shapes = shapes
        self.bindings = bindings
    }

    /// Returns the number of evaluations that exceeded the cost limit while conditions were armed, since the last call.
    package mutating func takeArmedOverCost() -> Int {
        defer { armedOverCost = 0 }
        return armedOverCost
    }

    /// The number of armed subscriptions.
    package var count: Int { subscribers.count }
    package func policy(of handle: Handle) -> Policy { subscribers[handle.number].policy }
    /// The number of conditions that an update evaluates, at this moment.
    package var evaluatedCount: Int { evaluated.count }
    /// The number of conditions with an alternative without an indexed comparison, and the number of conditions of which a part
    /// is evaluated while their comparisons hold.
    package private(set) var unguardedCount = 0
    package private(set) var guardedCount = 0
    /// The approximate bytes of texts, bytes and lists among the constants.
    package private(set) var constantBytes = 0
    /// The number of entries that the next update checks, including removed subscriptions.
    var freshCount: Int { fresh.count }
    /// The number of compared expressions. An update evaluates each once.
    package var comparedCount: Int { keys.count }
    /// Whether the subscription was not evaluated since it was armed, and would fire now.
    package func holdsUnseen(_ handle: Handle) -> Bool {
        let subscriber = subscribers[handle.number]
        return subscriber.isFresh && !subscriber.isQuiet && subscriber.condition >= 0
            && conditions[subscriber.condition].holds
    }
    /// Returns the usage of the item's limits by an owner alone.
    package func usage(of owner: ConditionOwner) -> ConditionUsage { usages[owner] }

    /// Returns the usage that a condition would add; none if an equal condition exists.
    package func usage(adding shape: Int, _ values: [ExpressionValue], in shapes: ConditionShapes) -> ConditionUsage {
        guard find(shape, values) == nil else { return .none }
        var usage = Self.usage(of: shape, values, in: shapes)
        usage.compared = (shapes.entries[shape]?.expressions ?? []).count { !usages.isCompared($0) }
        return usage
    }

    // MARK: Arming

    /// Whether a shape has an alternative without an indexed comparison. Its conditions are evaluated with each update.
    package static func isUnguarded(_ shape: Int, in shapes: ConditionShapes) -> Bool {
        shapes.entries[shape]?.alternatives.contains { $0.isEmpty } ?? false
    }

    /// Arms a subscription. The next update evaluates it, even if the update does not change its condition.
    ///
    /// - Parameters:
    ///   - shape: Nil if there is no condition. The subscription then fires with each update until it is removed.
    ///   - wasWatched: Whether the condition was evaluated with the values of the last update, as for a subscription that is
    ///     loaded from the store. A condition that holds is then not a crossing, and the next update evaluates the subscription
    ///     in any case only if its policy is `once`.
    ///   - owner: The owner whose quota the condition counts against.
    package mutating func add(
        _ subscription: Int64, _ policy: Policy, shape: Int?, constants: [ExpressionValue] = [], wasWatched: Bool = false,
        owner: ConditionOwner = .several
    ) -> Handle {
        guard let shape else {
            var subscriber = Subscriber(subscription: subscription, condition: -1, stamp: stamp, policy: policy)
            // The index in `unconditional`.
            subscriber.next = Int32(unconditional.count)
            let number = subscribers.insert(subscriber)
            unconditional.append(number)
            return Handle(number: number)
        }
        let condition = find(shape, constants).map { noted($0, of: owner) } ?? insert(shape, constants, of: owner)
        let first = conditions[condition].subscribers
        stamp &+= 1
        var subscriber = Subscriber(subscription: subscription, condition: condition, stamp: stamp, policy: policy)
        subscriber.next = first
        subscriber.isQuiet = wasWatched && policy == .everyCrossing && conditions[condition].holds
        subscriber.isFresh = !wasWatched || policy == .once
        let number = subscribers.insert(subscriber)
        if first >= 0 { subscribers[first].previous = number }
        conditions[condition].subscribers = number
        if policy == .every {
            conditions[condition].lasting += 1
            updateLasting(condition)
        }
        if subscriber.isFresh { noteFresh(number) }
        return Handle(number: number)
    }

    /// Notes that a firing was not stored. The subscription fires again with the next update if the condition holds then.
    package mutating func takeBack(_ handle: Handle) {
        subscribers[handle.number].isQuiet = false
        guard subscribers[handle.number].condition >= 0 else { return }
        guard !subscribers[handle.number].isFresh else { return }
        subscribers[handle.number].isFresh = true
        noteFresh(handle.number)
    }

    /// The subscriptions that were armed and not evaluated yet, for ``takeBack(_:)``. Making the value copies nothing.
    package struct Unseen: Sendable {
        fileprivate let entries: [(number: Int32, stamp: UInt32)]
    }

    package var unseen: Unseen { Unseen(entries: fresh) }

    /// Returns the subscriptions that were not removed since.
    package func handles(of unseen: Unseen) -> Set<Handle> {
        Set(unseen.entries.filter { subscribers[$0.number].stamp == $0.stamp }.map { Handle(number: $0.number) })
    }

    private mutating func noteFresh(_ number: Int32) {
        // Keeps the list short if many subscriptions are armed and removed between two updates.
        if fresh.count > 2 * subscribers.count + 1000 { fresh = fresh.filter(isFresh) }
        fresh.append((number, subscribers[number].stamp))
    }

    private func isFresh(_ number: Int32, _ stamp: UInt32) -> Bool {
        subscribers[number].isFresh && subscribers[number].stamp == stamp
    }

    /// Disarms a subscription.
    package mutating func remove(_ handle: Handle) {
        let subscriber = subscribers[handle.number]
        guard subscriber.condition >= 0 else {
            let last = unconditional.removeLast()
            if last != handle.number {
                unconditional[Int(subscriber.next)] = last
                subscribers[last].next = subscriber.next
            }
            subscribers.remove(handle.number)
            return
        }
        if subscriber.next >= 0 { subscribers[subscriber.next].previous = subscriber.previous }
        if subscriber.previous >= 0 {
            subscribers[subscriber.previous].next = subscriber.next
        } else {
            conditions[subscriber.condition].subscribers = subscriber.next
        }
        subscribers[handle.number].isFresh = false
        subscribers.remove(handle.number)
        if subscriber.policy == .every {
            conditions[subscriber.condition].lasting -= 1
            updateLasting(subscriber.condition)
        }
        if conditions[subscriber.condition].subscribers < 0 { remove(condition: subscriber.condition) }
    }

    // MARK: Updating

    /// An update that is being evaluated.
    package struct Pass: Sendable {
        /// The steps, in their order. The list that a step iterates over does not change during the step.
        fileprivate enum Step: Int {
            case expressions, touched, evaluated, lasting, fresh, unconditional, done
        }

        package fileprivate(set) var outcome = Outcome()
        fileprivate var step = Step.expressions
        /// The number of elements of the step that were processed.
        fileprivate var place = 0
        fileprivate var expressions: [Int]
        fileprivate var fresh: [(number: Int32, stamp: UInt32)] = []
    }

    /// - Parameter bindings: The values of all names that conditions use, after the update.
    package mutating func update(_ bindings: ExpressionBindings) -> Outcome {
        var pass = begin(bindings)
        while !advance(&pass, by: .max) {}
        return pass.outcome
    }

    /// Begins an update, which ``advance(_:by:)`` completes. No subscription may be armed or removed in between.
    package mutating func begin(_ bindings: ExpressionBindings) -> Pass {
        self.bindings = bindings
        return Pass(expressions: Array(keys.keys))
    }

    /// Processes up to a number of expressions, conditions or subscribers. Returns whether the update is complete.
    package mutating func advance(_ pass: inout Pass, by count: Int) -> Bool {
        var left = count
        while left > 0, pass.step != .done {
            let total = total(of: pass)
            guard pass.place < total else {
                endStep(of: &pass)
                continue
            }
            let end = pass.place + min(left, total - pass.place)
            left -= end - pass.place
            take(pass.place..<end, of: &pass)
            pass.place = end
        }
        return pass.step == .done
    }

    private func total(of pass: Pass) -> Int {
        switch pass.step {
        case .expressions: pass.expressions.count
        case .touched: touched.count
        case .evaluated: evaluated.count
        case .lasting: lasting.count
        case .fresh: pass.fresh.count
        case .unconditional: unconditional.count
        case .done: 0
        }
    }

    private mutating func endStep(of pass: inout Pass) {
        if pass.step == .touched { touched.removeAll(keepingCapacity: true) }
        pass.step = .init(rawValue: pass.step.rawValue + 1) ?? .done
        pass.place = 0
        guard pass.step == .fresh else { return }
        pass.fresh = fresh
        fresh.removeAll(keepingCapacity: true)
    }

    private mutating func take(_ places: Range<Int>, of pass: inout Pass) {
        switch pass.step {
        case .expressions: for place in places { change(pass.expressions[place], &pass.outcome) }
        case .touched:
            for place in places {
                conditions[touched[place]].isTouched = false
                settle(touched[place], &pass.outcome)
            }
        case .evaluated: evaluate(places, &pass.outcome)
        case .lasting:
            for place in places {
                forEachSubscriber(of: lasting[place]) { number, index in
                    if index.subscribers[number].policy == .every { index.fire(number, &pass.outcome) }
                }
            }
        case .fresh:
            for place in places where isFresh(pass.fresh[place].number, pass.fresh[place].stamp) {
                // A subscription that fires with each update has fired already.
                look(at: pass.fresh[place].number, unless: .every, &pass.outcome)
            }
        case .unconditional:
            for place in places where !subscribers[unconditional[place]].isQuiet {
                let number = unconditional[place]
                pass.outcome.fired.append(fired(number))
                if subscribers[number].policy == .once { subscribers[number].isQuiet = true }
            }
        case .done: break
        }
    }

    /// Evaluates subscriptions that were armed since the last update, with the values after it. A subscription whose condition
    /// holds already fires.
    package mutating func look(at handles: some Sequence<Handle>) -> Outcome {
        var outcome = Outcome()
        guard bindings != nil else { return outcome }
        for handle in handles where subscribers[handle.number].isFresh {
            // The entry in `fresh` becomes invalid, because the subscription is evaluated now.
            subscribers[handle.number].stamp = 0
            look(at: handle.number, unless: nil, &outcome)
        }
        return outcome
    }

    private mutating func look(at number: Int32, unless policy: Policy?, _ outcome: inout Outcome) {
        subscribers[number].isFresh = false
        let subscriber = subscribers[number]
        guard subscriber.condition >= 0, conditions[subscriber.condition].holds, !subscriber.isQuiet,
            subscriber.policy != policy
        else { return }
        fire(number, &outcome)
    }

    private func fired(_ number: Int32) -> Fired {
        Fired(handle: Handle(number: number), subscription: subscribers[number].subscription)
    }

    private mutating func fire(_ number: Int32, _ outcome: inout Outcome) {
        outcome.fired.append(fired(number))
        if subscribers[number].policy != .every { subscribers[number].isQuiet = true }
    }

    private mutating func change(_ expression: Int, _ outcome: inout Outcome) {
        let old = values[expression]
        let new = value(of: expression, &outcome)
        if let old, let new, new.isSame(as: old) { return }
        values[expression] = new
        for terms in (keys[expression] ?? [:]).values {
            terms.changes(from: old, to: new) { first, holds in
                var posting = first
                while posting >= 0 {
                    count(alternative: postings[posting].alternative, holds ? 1 : -1)
                    posting = postings[posting].next
                }
            }
        }
    }

    private func value(of expression: Int, _ outcome: inout Outcome) -> ExpressionValue? {
        guard let bindings, let compared = shapes.compared[expression] else { return nil }
        var units = costLimit
        do {
            return try compared.program.value(bindings, spending: &units)
        } catch {
            // No error is counted, because conditions without this comparison have a value.
            if error.code == .budget { outcome.overCost += 1 }
            return nil
        }
    }

    private mutating func count(alternative number: Int32, _ difference: Int32) {
        let wasFull = alternatives[number].holding == alternatives[number].terms
        alternatives[number].holding += difference
        let isFull = alternatives[number].holding == alternatives[number].terms
        guard isFull != wasFull else { return }
        let condition = alternatives[number].condition
        conditions[condition].full += isFull ? 1 : -1
        guard !conditions[condition].isTouched else { return }
        conditions[condition].isTouched = true
        touched.append(condition)
    }

    /// Updates a condition whose terms changed.
    private mutating func settle(_ condition: Int32, _ outcome: inout Outcome) {
        let isFull = conditions[condition].full > 0
        guard shapes.entries[Int(conditions[condition].shape)]?.hasResidue == true else {
            return set(condition, holds: isFull, &outcome)
        }
        setEvaluated(condition, isFull)
        if !isFull { set(condition, holds: false, &outcome) }
    }

    private mutating func evaluate(_ places: Range<Int>, _ outcome: inout Outcome) {
        guard let bindings else { return }
        // Adjacent conditions usually have the same shape.
        var known: (number: Int32, shape: ExpressionShape)?
        for place in places {
            let condition = evaluated[place]
            let (number, first) = (conditions[condition].shape, conditions[condition].constants)
            if known?.number != number { known = shapes.entries[Int(number)].map { (number, $0.shape) } }
            guard let shape = known?.shape else { continue }
            do {
                let holds = try shape.holds(
                    bindings, constants: constants.row(from: first, shape.constantCount), limit: costLimit)
                set(condition, holds: holds, &outcome)
            } catch {
                outcome.errors += 1
                if error.code == .budget { outcome.overCost += 1 }
                set(condition, holds: false, &outcome)
            }
        }
    }

    private mutating func set(_ condition: Int32, holds: Bool, _ outcome: inout Outcome) {
        guard conditions[condition].holds != holds else { return }
        conditions[condition].holds = holds
        updateLasting(condition)
        var number = conditions[condition].subscribers
        while number >= 0 {
            if !holds {
                subscribers[number].isQuiet = false
            } else if subscribers[number].policy != .every, !subscribers[number].isQuiet {
                fire(number, &outcome)
            }
            number = subscribers[number].next
        }
    }

    private mutating func forEachSubscriber(of condition: Int32, _ body: (Int32, inout ItemIndex) -> Void) {
        var number = conditions[condition].subscribers
        while number >= 0 {
            let next = subscribers[number].next
            body(number, &self)
            number = next
        }
    }

    // MARK: Lists of conditions

    private mutating func updateLasting(_ condition: Int32) {
        let isLasting = conditions[condition].holds && conditions[condition].lasting > 0
        let place = conditions[condition].lastingAt
        if isLasting, place < 0 {
            conditions[condition].lastingAt = Int32(lasting.count)
            lasting.append(condition)
        } else if !isLasting, place >= 0 {
            let last = lasting.removeLast()
            if last != condition {
                lasting[Int(place)] = last
                conditions[last].lastingAt = place
            }
            conditions[condition].lastingAt = -1
        }
    }

    private mutating func setEvaluated(_ condition: Int32, _ isEvaluated: Bool) {
        let place = conditions[condition].evaluatedAt
        if isEvaluated, place < 0 {
            conditions[condition].evaluatedAt = Int32(evaluated.count)
            evaluated.append(condition)
        } else if !isEvaluated, place >= 0 {
            let last = evaluated.removeLast()
            if last != condition {
                evaluated[Int(place)] = last
                conditions[last].evaluatedAt = place
            }
            conditions[condition].evaluatedAt = -1
        }
    }

    // MARK: Conditions

    private func find(_ shape: Int, _ values: [ExpressionValue]) -> Int32? {
        guard let found = equal[Self.hash(shape, values)], conditions[found].shape == shape else { return nil }
        let first = conditions[found].constants
        let isSame = values.indices.allSatisfy { values[$0].isSame(as: constants[first + Int32($0)]) }
        return isSame ? found : nil
    }

    private static func hash(_ shape: Int, _ values: [ExpressionValue]) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(shape)
        for value in values { value.hash(into: &hasher) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Adds an owner to an existing condition.
    private mutating func noted(_ condition: Int32, of owner: ConditionOwner) -> Int32 {
        let known = conditions[condition].owner
        guard known != owner, known != .several else { return condition }
        let shape = Int(conditions[condition].shape)
        let values = constants.row(from: conditions[condition].constants, shapes.entries[shape]?.shape.constantCount ?? 0)
        usages.charge(known, Self.usage(of: shape, values, in: shapes), times: -1)
        conditions[condition].owner = .several
        for expression in shapes.entries[shape]?.expressions ?? [] { usages.compares(owner, expression) }
        return condition
    }

    private mutating func insert(_ shape: Int, _ values: [ExpressionValue], of owner: ConditionOwner) -> Int32 {
        shapes.retain(shape)
        count(shape, values, of: owner, by: 1)
        let parts = shapes.entries[shape]?.alternatives ?? []
        let condition = conditions.insert(
            Condition(
                shape: Int32(shape), constants: constants.insert(values),
                alternatives: alternatives.insert(parts.map { _ in Alternative(condition: 0, postings: 0, terms: 0) })))
        equal[Self.hash(shape, values)] = condition
        conditions[condition].owner = owner
        for expression in shapes.entries[shape]?.expressions ?? [] { usages.compares(owner, expression) }
        for (index, terms) in parts.enumerated() {
            let number = conditions[condition].alternatives + Int32(index)
            let needed = terms.map { Self.keys(of: $0, values) }
            let total = needed.reduce(0) { $0 + $1.count }
            alternatives[number] = Alternative(
                condition: condition,
                postings: postings.insert(Array(repeating: Posting(alternative: number), count: total)),
                terms: Int32(terms.count))
            var posting = alternatives[number].postings
            for (term, constants) in zip(terms, needed) {
                let value = known(term.expression)
                for constant in constants {
                    link(posting, term, constant)
                    if let value, holds(term, constant, value) { alternatives[number].holding += 1 }
                    posting += 1
                }
            }
            if alternatives[number].holding == alternatives[number].terms { conditions[condition].full += 1 }
        }
        begin(condition)
        return condition
    }

    private mutating func count(_ shape: Int, _ values: [ExpressionValue], of owner: ConditionOwner, by sign: Int) {
        let usage = Self.usage(of: shape, values, in: shapes)
        constantBytes += sign * usage.constantBytes
        unguardedCount += sign * usage.unguarded
        guardedCount += sign * usage.guarded
        usages.charge(owner, usage, times: sign)
    }

    /// Returns the usage of a condition without its compared expressions.
    private static func usage(of shape: Int, _ values: [ExpressionValue], in shapes: ConditionShapes) -> ConditionUsage {
        var usage = ConditionUsage(constantBytes: values.reduce(0) { $0 + bytes(of: $1) })
        guard shapes.entries[shape]?.hasResidue == true else { return usage }
        if isUnguarded(shape, in: shapes) { usage.unguarded = 1 } else { usage.guarded = 1 }
        return usage
    }

    /// Returns the bytes of a value in addition to the slot that each value has.
    package static func bytes(of value: ExpressionValue) -> Int {
        switch value {
        case .string(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .list(let elements): elements.reduce(0) { $0 + MemoryLayout<ExpressionValue>.stride + bytes(of: $1) }
        default: 0
        }
    }

    /// Determines whether a new condition holds now. No subscriber fires: the next update evaluates them.
    private mutating func begin(_ condition: Int32) {
        let isFull = conditions[condition].full > 0
        conditions[condition].holds = isFull
        guard let entry = shapes.entries[Int(conditions[condition].shape)], entry.hasResidue else { return }
        setEvaluated(condition, isFull)
        guard isFull, let bindings else {
            conditions[condition].holds = false
            return
        }
        let values = constants.row(from: conditions[condition].constants, entry.shape.constantCount)
        do {
            conditions[condition].holds = try entry.shape.holds(bindings, constants: values, limit: costLimit)
        } catch {
            if error.code == .budget { armedOverCost += 1 }
            conditions[condition].holds = false
        }
    }

    private mutating func remove(condition: Int32) {
        let shape = Int(conditions[condition].shape)
        let parts = shapes.entries[shape]?.alternatives ?? []
        let values = constants.row(from: conditions[condition].constants, shapes.entries[shape]?.shape.constantCount ?? 0)
        count(shape, values, of: conditions[condition].owner, by: -1)
        setEvaluated(condition, false)
        let hash = Self.hash(shape, values)
        if equal[hash] == condition { equal[hash] = nil }
        for (index, terms) in parts.enumerated() {
            let alternative = alternatives[conditions[condition].alternatives + Int32(index)]
            var posting = alternative.postings
            for term in terms {
                for constant in Self.keys(of: term, values) {
                    unlink(posting, term, constant)
                    posting += 1
                }
            }
            postings.remove(from: alternative.postings, Int(posting - alternative.postings))
        }
        alternatives.remove(from: conditions[condition].alternatives, parts.count)
        constants.remove(from: conditions[condition].constants, values.count)
        conditions.remove(condition)
        shapes.release(shape)
    }

    // MARK: Terms

    /// Returns the constants of a term without duplicates: one constant, or the elements of a list.
    private static func keys(of term: ConditionShapes.Term, _ values: [ExpressionValue]) -> [ExpressionValue] {
        switch term.constant {
        case .always(let value): return [value]
        case .at(let place):
            guard term.comparison.sign == .oneOf, case .list(let elements) = values[place] else { return [values[place]] }
            var different: [ExpressionValue] = []
            for element in elements where !different.contains(where: { $0.isSame(as: element) }) {
                different.append(element)
            }
            return different
        }
    }

    private func holds(_ term: ConditionShapes.Term, _ constant: ExpressionValue, _ value: ExpressionValue) -> Bool {
        var keys = TermKeys(term.comparison)
        keys[constant] = 0
        var holds = false
        keys.changes(from: nil, to: value) { _, now in holds = now }
        return holds
    }

    private mutating func known(_ expression: Int) -> ExpressionValue? {
        if keys[expression] == nil {
            keys[expression] = [:]
            var outcome = Outcome()
            values[expression] = value(of: expression, &outcome)
            armedOverCost += outcome.overCost
        }
        return values[expression]
    }

    private mutating func link(_ posting: Int32, _ term: ConditionShapes.Term, _ constant: ExpressionValue) {
        let first = keys[term.expression]?[term.comparison]?[constant] ?? -1
        postings[posting].next = first
        if first >= 0 { postings[first].previous = posting }
        keys[term.expression]?[term.comparison, default: TermKeys(term.comparison)][constant] = posting
    }

    private mutating func unlink(_ posting: Int32, _ term: ConditionShapes.Term, _ constant: ExpressionValue) {
        let (next, previous) = (postings[posting].next, postings[posting].previous)
        if next >= 0 { postings[next].previous = previous }
        guard previous < 0 else {
            postings[previous].next = next
            return
        }
        keys[term.expression]?[term.comparison]?[constant] = next >= 0 ? next : nil
        guard keys[term.expression]?[term.comparison]?.isEmpty == true else { return }
        keys[term.expression]?[term.comparison] = nil
        guard keys[term.expression]?.isEmpty == true else { return }
        keys[term.expression] = nil
        usages.forget(term.expression)
        values[term.expression] = nil
    }
}
