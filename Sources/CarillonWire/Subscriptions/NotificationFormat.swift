package import CarillonBasics

/// The notification of an item subscription: texts with placeholders, and their options. Only checks that need no knowledge of
/// items are done here.
package struct NotificationFormat: Equatable, Sendable {
    /// The format with all members in a fixed order.
    package let json: JSONValue

    /// Compares two formats independent of the order of members.
    package static func == (one: Self, other: Self) -> Bool {
        one.json == other.json || SubscriptionHash.canonical(one.json) == SubscriptionHash.canonical(other.json)
    }

    package static let longestBytes = 8192
    /// The time that a notification waits if its format sets no TTL, in seconds.
    package static let standardTTL: Int64 = 7 * 86_400
    /// The deepest nesting of custom values.
    private static let customDepth = 8

    package static let memberNames: Set = texts.union(keys).union(arguments).union(flags).union([
        "sound", "badge", "interruptionLevel", "relevance", "custom", "ttl", "priority", "route", "private",
    ])

    /// Members whose texts can contain placeholders.
    private static let texts: Set = [
        "title", "subtitle", "body", "category", "thread", "collapse", "targetContent", "filterCriteria",
    ]
    /// Members without placeholders.
    private static let keys: Set = ["titleKey", "subtitleKey", "bodyKey", "launchImage"]
    /// Members that are lists of texts.
    private static let arguments: Set = ["titleArguments", "subtitleArguments", "bodyArguments"]
    private static let flags: Set = ["contentAvailable", "mutableContent"]
    private static let shown: Set = ["title", "subtitle", "body", "titleKey", "subtitleKey", "bodyKey"]

    package init(_ json: JSONValue) throws(Refusal) {
        guard case .object(let members) = json else { throw Self.refusal("it is no object") }
        guard !members.isEmpty else { throw Refusal(.formatEmpty, "The notification's format has no member.") }
        guard json.bytes.count <= Self.longestBytes else {
            throw Refusal(.formatTooLong, "A notification's format may have \(Self.longestBytes) bytes.")
        }
        var seen: Set<String> = []
        for member in members {
            guard seen.insert(member.name).inserted else { throw Self.refusal("\"\(member.name)\" is there twice") }
            try Self.check(member)
        }
        guard !seen.isDisjoint(with: Self.shown.union(["sound", "badge", "custom", "contentAvailable"])) else {
            throw Refusal(.formatEmpty, "The notification's format shows nothing, and wakes nothing.")
        }
        for key in ["title", "subtitle", "body"] where seen.contains(key) && seen.contains(key + "Key") {
            throw Self.refusal("say either \"\(key)\" or \"\(key)Key\"")
        }
        for key in ["title", "subtitle", "body"] where seen.contains(key + "Arguments") && !seen.contains(key + "Key") {
            throw Self.refusal("\"\(key)Arguments\" are those of \"\(key)Key\"")
        }
        self.json = json
    }

    private static func refusal(_ why: String) -> Refusal {
        Refusal(.formatInvalid, "The notification's format cannot be used: \(why).")
    }

    private static func check(_ member: JSONValue.Member) throws(Refusal) {
        switch (member.name, member.value) {
        case (let name, .string) where texts.contains(name): break
        case (let name, .string(let text)) where keys.contains(name) && !text.isEmpty: break
        case (let name, .array(let values)) where arguments.contains(name) && values.allSatisfy(\.isText): break
        case (let name, .bool) where flags.contains(name): break
        case ("sound", .string): break
        case ("sound", .object(let members)): try check(sound: members)
        case ("badge", .string): break
        case ("badge", .integer(let number)) where number >= 0: break
        case ("interruptionLevel", .string(let level))
        where ["passive", "active", "time-sensitive", "critical"].contains(level):
            break
        case ("relevance", .integer(0...1)): break
        case ("relevance", .number(let number)) where (0...1).contains(number): break
        case ("ttl", .integer(let seconds)) where seconds > 0 && Int64(seconds) <= Limits.ttlSeconds: break
        case ("private", let keys):
            guard PrivateKeys(keys) != nil else {
                throw refusal(
                    "\"private\" has \"p256dh\", a point on P-256 (65 bytes), and \"auth\" (16 bytes), in base64url")
            }
        case ("route", .string(let route)) where ["unlessSeen", "always"].contains(route): break
        case ("priority", .string(let priority)) where ["immediate", "considerPower"].contains(priority): break
        case ("custom", .object(let members)):
            if let taken = members.first(where: { ["aps", "carillon"].contains($0.name) }) {
                throw refusal("a custom value cannot be called \"\(taken.name)\"")
            }
            guard member.value.depth <= customDepth else { throw refusal("custom values lie too deep in each other") }
        case (let name, _) where memberNames.contains(name): throw refusal("\"\(name)\" cannot have that value")
        case (let name, _):
            throw refusal("\"\(name.prefix(60))\" is unknown; known are: \(memberNames.sorted().joined(separator: ", "))")
        }
    }

    private static func check(sound members: [JSONValue.Member]) throws(Refusal) {
        for member in members {
            switch (member.name, member.value) {
            case ("name", .string), ("critical", .bool), ("volume", .integer(0...1)): break
            case ("volume", .number(let volume)) where (0...1).contains(volume): break
            default: throw refusal("a sound has a \"name\", may be \"critical\", and has a \"volume\" from 0 to 1")
            }
        }
        guard members.contains(where: { $0.name == "name" }), Set(members.map(\.name)).count == members.count else {
            throw refusal("a sound needs one \"name\"")
        }
    }

    /// The time that a notification waits, in seconds.
    package var ttl: Int64 {
        if case .integer(let seconds)? = json["ttl"] { Int64(seconds) } else { Self.standardTTL }
    }

    /// Whether the notification is pushed even if the device has already acknowledged it.
    package var isAlwaysPushed: Bool { json["route"] == .string("always") }

    /// Members that only the server uses, and that are not sent to the device.
    package static let ownMembers: Set = ["ttl", "route"]

    /// Whether the notification shows something or plays a sound.
    package static func isShown(_ json: JSONValue) -> Bool {
        !json.names.isDisjoint(with: shown.union(["sound", "badge"]))
    }

    /// Whether the texts of a member can contain placeholders.
    package static func hasPlaceholders(_ name: String) -> Bool {
        texts.contains(name) || arguments.contains(name) || ["sound", "badge", "custom"].contains(name)
    }
}

extension JSONValue {
    fileprivate var isText: Bool { if case .string = self { true } else { false } }

    fileprivate var depth: Int {
        switch self {
        case .array(let values): 1 + (values.map(\.depth).max() ?? 0)
        case .object(let members): 1 + (members.map(\.value.depth).max() ?? 0)
        default: 0
        }
    }
}
