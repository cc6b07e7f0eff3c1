package import CarillonBasics
package import CarillonExpression
package import CarillonWire

/// A parsed format of notifications, with the values that its placeholders show:
///
///     ${field}  $[1]  ${item}  ${subscription.id}  ${subscription.key}  ${update.time}  ${{ price * 2.0 | number(2) }}
///
/// `$${` and `$$[` produce `${` and `$[`.
package struct NotificationTemplate: Sendable {
    /// The values of a firing that placeholders show.
    package struct Values {
        package var subscription: SubscriptionID
        package var key: String?
        package var item: ItemName
        package var state: ItemState
        package var bindings: ExpressionBindings
        package var reader: Reader

        package init(
            subscription: SubscriptionID, key: String?, item: ItemName, state: ItemState, bindings: ExpressionBindings,
            reader: Reader
        ) {
            self.subscription = subscription
            self.key = key
            self.item = item
            self.state = state
            self.bindings = bindings
            self.reader = reader
        }
    }

    package struct Rendered: Equatable, Sendable {
        package var json: JSONValue
        /// The number of expressions that had no value, and of other placeholders that could not be shown. A failed expression
        /// shows nothing.
        package var errors = 0
        /// The bytes that texts may still add.
        fileprivate var room = NotificationTemplate.renderedBytes
        /// The units of cost that the remaining expressions may use.
        fileprivate var units: Int
    }

    enum Segment: Sendable {
        case text(String)
        case field(String)
        case item
        case subscriptionID
        case subscriptionKey
        case updateTime
        case expression(ExpressionProgram, ValueStyle?, cost: Int)
    }

    private indirect enum Node: Sendable {
        case fixed(JSONValue)
        case text([Segment])
        case array([Node])
        case object([(name: String, node: Node)])
    }

    private let root: [(name: String, node: Node)]
    package let ttl: Int64
    package let isAlwaysPushed: Bool
    /// The largest total size of the texts of a notification with their values, in bytes. Longer texts are cut.
    package static let renderedBytes = 16_384
    /// The lowest possible cost of all expressions together, in units of the language.
    package let cost: Int
    /// The names, functions and operators that the placeholders use.
    package let vocabulary: ItemVocabulary

    /// - Parameter fields: The fields of the subscription, in its order.
    /// - Throws: ``Refusal`` with the first invalid placeholder.
    package init(
        _ format: NotificationFormat, over fields: [String], in conditions: ItemConditions,
        types: [String: ExpressionType] = [:], maxBytes: [String: Int] = [:]
    ) throws(Refusal) {
        let parser = PlaceholderParser(fields: fields, types: types, maxBytes: maxBytes, conditions: conditions)
        var root: [(name: String, node: Node)] = []
        if case .object(let members) = format.json {
            for member in members where !NotificationFormat.ownMembers.contains(member.name) {
                let node: Node =
                    NotificationFormat.hasPlaceholders(member.name)
                    ? try Self.node(member.value, parser) : .fixed(member.value)
                root.append((member.name, node))
            }
        }
        self.root = root
        ttl = format.ttl
        isAlwaysPushed = format.isAlwaysPushed
        let segments = Self.segments(of: .object(root))
        cost = segments.reduce(0) { sum, segment in
            if case .expression(_, _, let cost) = segment { sum + min(cost, 1 << 30) } else { sum }
        }
        vocabulary = segments.reduce(into: ItemVocabulary()) { sum, segment in
            switch segment {
            case .field(let name): sum.names.insert(ItemVocabulary.name(ofField: name))
            case .item: sum.names.insert("item")
            case .updateTime: sum.names.insert("update.time")
            case .expression(let program, _, _): sum.formUnion(ItemVocabulary(of: program, over: fields))
            case .text, .subscriptionID, .subscriptionKey: break
            }
        }
    }

    private static func segments(of node: Node) -> [Segment] {
        switch node {
        case .fixed: []
        case .text(let segments): segments
        case .array(let nodes): nodes.flatMap { segments(of: $0) }
        case .object(let members): members.flatMap { segments(of: $0.node) }
        }
    }

    private static func node(_ value: JSONValue, _ parser: PlaceholderParser) throws(Refusal) -> Node {
        switch value {
        case .string(let text):
            let segments = try parser.segments(of: text)
            if segments.isEmpty { return .fixed(.string("")) }
            if segments.count == 1, case .text(let plain) = segments[0] { return .fixed(.string(plain)) }
            return .text(segments)
        case .array(let values):
            var nodes: [Node] = []
            for value in values { nodes.append(try node(value, parser)) }
            return .array(nodes)
        case .object(let members):
            var nodes: [(name: String, node: Node)] = []
            for member in members { nodes.append((member.name, try node(member.value, parser))) }
            return .object(nodes)
        default: return .fixed(value)
        }
    }

    /// - Parameter cost: The cost limit of all expressions together. The expression that exceeds the limit, and all later ones,
    ///   show nothing.
    package func render(_ values: Values, _ styles: ValueStyles, cost: Int = .max) -> Rendered {
        var rendered = Rendered(json: .null, units: cost)
        var members: [JSONValue.Member] = []
        for (name, node) in root {
            var value = Self.value(of: node, values, styles, &rendered)
            // A badge with placeholders is rendered as text and converted to a number.
            if name == "badge", case .string(let text) = value, text != "auto" {
                guard let number = Int(text) ?? Self.integer(text), number >= 0 else {
                    rendered.errors += 1
                    continue
                }
                value = .integer(number)
            }
            members.append(.init(name: name, value: value))
        }
        rendered.json = .object(members)
        return rendered
    }

    /// Returns the integer value of a number such as `7.0`.
    private static func integer(_ text: String) -> Int? {
        if case .integer(let number)? = JSONValue(parsing: Array(text.utf8)) { number } else { nil }
    }

    private static func value(
        of node: Node, _ values: Values, _ styles: ValueStyles, _ rendered: inout Rendered
    ) -> JSONValue {
        switch node {
        case .fixed(let value): return value
        case .text(let segments):
            var text = ""
            for segment in segments where rendered.room > 0 {
                var part = shown(segment, values, styles, &rendered)
                if part.utf8.count > rendered.room {
                    part = part.cut(toBytes: rendered.room)
                    rendered.errors += 1
                    rendered.room = 0
                }
                rendered.room -= part.utf8.count
                text += part
            }
            return .string(text)
        case .array(let nodes): return .array(nodes.map { value(of: $0, values, styles, &rendered) })
        case .object(let members):
            return .object(members.map { .init(name: $0.name, value: value(of: $0.node, values, styles, &rendered)) })
        }
    }

    private static func shown(
        _ segment: Segment, _ values: Values, _ styles: ValueStyles, _ rendered: inout Rendered
    ) -> String {
        switch segment {
        case .text(let text): return text
        case .field(let name): return values.state.fields[name]?.text ?? ""
        case .item: return values.item.text
        case .subscriptionID: return values.subscription.description
        case .subscriptionKey: return values.key ?? ""
        case .updateTime:
            guard let time = values.bindings["update.time"] else { return "" }
            return ItemValue(time).text
        case .expression(let program, let style, _):
            do {
                let value = try program.value(values.bindings, spending: &rendered.units)
                guard let style else { return ItemValue(value).text }
                if case .null = value { return "" }
                if let text = styles.text(value, style, values.reader) { return text }
            } catch {}
            rendered.errors += 1
            return ""
        }
    }
}

/// Parses the placeholders of one text.
private struct PlaceholderParser {
    let fields: [String]
    let types: [String: ExpressionType]
    let maxBytes: [String: Int]
    let conditions: ItemConditions

    func segments(of text: String) throws(Refusal) -> [NotificationTemplate.Segment] {
        var segments: [NotificationTemplate.Segment] = []
        var plain = ""
        var rest = text[...]
        func flush() {
            if !plain.isEmpty { segments.append(.text(plain)) }
            plain = ""
        }
        while let sign = rest.firstIndex(of: "$") {
            plain += rest[..<sign]
            rest = rest[sign...]
            if rest.hasPrefix("$${") || rest.hasPrefix("$$[") {
                plain += rest.dropFirst().prefix(2)
                rest = rest.dropFirst(3)
            } else if rest.hasPrefix("${{") {
                guard let end = rest.range(of: "}}") else { throw Self.refusal("\"${{\" has no \"}}\" behind it") }
                flush()
                segments.append(try expression(String(rest[rest.index(rest.startIndex, offsetBy: 3)..<end.lowerBound])))
                rest = rest[end.upperBound...]
            } else if rest.hasPrefix("${") {
                guard let end = rest.firstIndex(of: "}") else { throw Self.refusal("\"${\" has no \"}\" behind it") }
                flush()
                segments.append(try named(String(rest[..<end].dropFirst(2))))
                rest = rest[rest.index(after: end)...]
            } else if rest.hasPrefix("$[") {
                guard let end = rest.firstIndex(of: "]"), let place = Int(rest[..<end].dropFirst(2)) else {
                    throw Self.refusal("\"$[\" wants the number of a field and \"]\" behind it")
                }
                guard place >= 1, place <= fields.count else {
                    throw Self.refusal("there is no field \(place); the first is 1, and the last \(fields.count)")
                }
                flush()
                segments.append(.field(fields[place - 1]))
                rest = rest[rest.index(after: end)...]
            } else {
                plain.append("$")
                rest = rest.dropFirst()
            }
        }
        plain += rest
        flush()
        return segments
    }

    private func named(_ name: String) throws(Refusal) -> NotificationTemplate.Segment {
        switch name {
        case "item": return .item
        case "subscription.id": return .subscriptionID
        case "subscription.key": return .subscriptionKey
        case "update.time": return .updateTime
        case _ where fields.contains(name): return .field(name)
        default:
            let known = fields + ["item", "subscription.id", "subscription.key", "update.time"]
            throw Self.refusal("there is no \"\(name.prefix(60))\"; known are: \(known.joined(separator: ", "))")
        }
    }

    private func expression(_ text: String) throws(Refusal) -> NotificationTemplate.Segment {
        var source = text
        var style: ValueStyle?
        if let bar = Self.styleBar(in: text) {
            source = String(text[..<bar])
            style = ValueStyle(String(text[text.index(after: bar)...]))
            guard style != nil else {
                throw Self.refusal(
                    "\"\(text[bar...].prefix(60))\" is no style; known are: number(2), percent(1), currency(EUR), date(short), time(short), dateTime(medium)"
                )
            }
        }
        do throws(ExpressionRefusal) {
            let names = Dictionary(uniqueKeysWithValues: Set(fields).map { ($0, types[$0] ?? .dynamic) })
            let (program, cost) = try conditions.expression(source, over: names, maxBytes: maxBytes)
            return .expression(program, style, cost: cost.lowerBound)
        } catch {
            throw Self.refusal("the expression: \(error)")
        }
    }

    /// Returns the position of the bar before a style: a bar that is neither part of `||` nor inside a quoted text.
    private static func styleBar(in text: String) -> String.Index? {
        var bar: String.Index?
        var quote: Character?
        var index = text.startIndex
        while index < text.endIndex {
            let (character, next) = (text[index], text.index(after: index))
            if let open = quote {
                if character == "\\", next < text.endIndex {
                    index = text.index(after: next)
                    continue
                }
                if character == open { quote = nil }
            } else if character == "\"" || character == "'" {
                quote = character
            } else if character == "|" {
                if next < text.endIndex, text[next] == "|" {
                    index = text.index(after: next)
                    continue
                }
                bar = index
            }
            index = next
        }
        return bar
    }

    private static func refusal(_ why: String) -> Refusal {
        Refusal(.placeholderInvalid, "A placeholder of the notification's format cannot be used: \(why).")
    }
}

extension StringProtocol {
    /// Returns the first position of an ASCII text.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
