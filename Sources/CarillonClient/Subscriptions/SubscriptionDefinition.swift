import CarillonBasics
import CarillonExpression
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The definition of a subscription.
struct SubscriptionDefinition: Equatable, Sendable {
    var items: [String]
    var fields: [String]
    var mode: NotificationSubscription.Mode?
    var trigger: String?
    var format: NotificationFormat
    var policy: NotificationSubscription.Policy
    var maxFrequency: Double?
    var bufferSize: Int?
    var key: String?
    var tags: [String] = []
    var expiresAt: Date?

    /// The server's form, over which the hash is made.
    var json: JSONValue {
        let (policy, coolDown) = policy.words
        return SubscriptionDocument.json(
            items: items, fields: fields, mode: mode?.rawValue, trigger: trigger, format: format.json, policy: policy,
            coolDown: coolDown, maxFrequency: maxFrequency, bufferSize: bufferSize, key: key, tags: tags,
            expiresAt: expiresAt.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) })
    }

    var hash: String { SubscriptionHash.text(of: json) }

    /// The server's form without null members, because a server of an earlier version may reject them.
    var body: [UInt8] {
        guard case .object(let members) = json else { return [] }
        return JSONValue.object(members.filter { $0.value != .null }).bytes
    }

    /// Makes a definition from the server's report.
    init(_ body: SubscriptionBody) {
        items = body.items
        fields = body.fields
        mode = body.mode.flatMap(NotificationSubscription.Mode.init)
        trigger = body.trigger
        format = NotificationFormat(json: body.format)
        policy = .init(body.policy, coolDown: body.coolDown)
        maxFrequency = body.maxFrequency
        bufferSize = body.bufferSize
        key = body.key
        tags = body.tags
        expiresAt = body.expiresAt.flatMap(Timestamp3339.milliseconds).map {
            Date(timeIntervalSince1970: Double($0) / 1000)
        }
    }

    init(
        items: [String], fields: [String], mode: NotificationSubscription.Mode?, trigger: String?,
        format: NotificationFormat, policy: NotificationSubscription.Policy, maxFrequency: Double? = nil,
        bufferSize: Int? = nil, key: String?, tags: [String], expiresAt: Date?
    ) {
        self.items = items
        self.fields = fields
        self.mode = mode
        self.trigger = trigger
        self.format = format
        self.policy = policy
        self.maxFrequency = maxFrequency
        self.bufferSize = bufferSize
        self.key = key
        self.tags = tags
        self.expiresAt = expiresAt
    }

    /// Checks the definition with the server's own parsers, so that a definition that the server would reject is found here.
    func check() throws(PushError) {
        guard !items.isEmpty, !fields.isEmpty else {
            throw PushError(.subscriptionInvalid, "A subscription needs at least one item and one field.")
        }
        if let maxFrequency, !(0.00001...1000).contains(maxFrequency) {
            throw PushError(.subscriptionInvalid, "A subscription fires 0.00001 to 1000 times a second at the most.")
        }
        if let bufferSize, maxFrequency == nil || !(1...100).contains(bufferSize) {
            throw PushError(.subscriptionInvalid, "A buffer has 1 to 100 firings, and is that of a highest frequency.")
        }
        // RFC 3339 cannot represent times far beyond this limit.
        if let expiresAt, !(0...4e9).contains(expiresAt.timeIntervalSince1970) {
            throw PushError(.subscriptionInvalid, "A subscription ends between 1970 and 2096, or not at all.")
        }
        do throws(Refusal) {
            _ = try CarillonWire.NotificationFormat(format.json)
        } catch {
            throw PushError(.subscriptionInvalid, error.detail)
        }
        guard body.count <= Self.longestBody else {
            throw PushError(.subscriptionInvalid, "A subscription may have \(Self.longestBody) bytes as JSON.")
        }
        if let trigger { try Self.check(trigger, over: fields) }
    }

    private static let longestBody = 60_000

    static func check(_ trigger: String, over fields: [String]) throws(PushError) {
        let names = Dictionary(fields.map { ($0, ExpressionType.dynamic) }, uniquingKeysWith: { $1 })
        var limits = ExpressionLimits()
        // The client sets no limit for the cost of a condition, because the server's operator sets it for each app.
        limits.cost = .max
        let environment = ItemLanguage.environment(over: names, limits: limits) { name, instant in
            TimeZone(identifier: name)?.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.seconds)))
        }
        do throws(ExpressionRefusal) {
            let program = try ExpressionProgram(trigger, in: environment)
            guard program.type == .bool || program.type == .dynamic else {
                throw ExpressionRefusal(
                    source: trigger, sentence: "a condition is a bool, not \(program.type)", code: .type)
            }
        } catch {
            throw PushError(.triggerInvalid, error.description)
        }
    }
}

extension NotificationSubscription.Policy {
    init(_ name: String, coolDown: Int64?) {
        switch name {
        case "once": self = .once
        case "everyCrossing": self = .everyCrossing
        case "every": self = .every(coolDown: .seconds(coolDown ?? 0))
        default: self = .unknown
        }
    }

    var words: (name: String, coolDown: Int64?) {
        switch self {
        case .once, .unknown: ("once", nil)
        case .everyCrossing: ("everyCrossing", nil)
        case .every(let coolDown): ("every", coolDown > .zero ? coolDown.wholeSeconds : nil)
        }
    }
}

extension Duration {
    /// The seconds, rounded up.
    fileprivate var wholeSeconds: Int64 { components.seconds + (components.attoseconds > 0 ? 1 : 0) }
}
