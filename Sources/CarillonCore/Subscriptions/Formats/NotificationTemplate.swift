package import CarillonBasics
package import CarillonExpression
package import CarillonWire

/// A notification's format, read: where its placeholders stand, and what each shows.
///
///     ${field}  $[1]  ${item}  ${subscription.id}  ${subscription.key}  ${update.time}  ${{ price * 2.0 | number(2) }}
///
/// `$${` and `$$[` are the signs themselves.
package struct NotificationTemplate: Sendable {
    /// What a firing gives the placeholders.
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
        /// Expressions that had no value; each shows nothing.
        package var errors = 0
        /// Of what stands in placeholders there may be so many bytes yet.
        fileprivate var room = NotificationTemplate.renderedBytes
        /// Units of cost that are left for the expressions.
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
    /// What all texts of a notification may have together, in bytes, once their values stand in them; what is longer is cut.
    package static let renderedBytes = 16_384
    /// The lowest cost of all its expressions together, in units of the language.
    package let cost: Int
    /// What its placeholders speak of.
    package let vocabulary: ItemVocabulary

    /// - Parameter fields: That the subscription names, in its order.
    /// - Throws: ``Refusal`` with the first placeholder that is none.
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

    /// - Parameter cost: What its expressions may cost together. The one that exceeds it shows nothing, as those after it.
    package func render(_ values: Values, _ styles: ValueStyles, cost: Int = .max) -> Rendered {
        var rendered = Rendered(json: .null, units: cost)
        var members: [JSONValue.Member] = []
        for (name, node) in root {
            var value = Self.value(of: node, values, styles, &rendered)
            // A badge that was text is a number once it is known.
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

    /// Returns the integer that a number such as `7.0` is.
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

/// Reads the placeholders of one text.
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
                guard let end = rest.range(of: "}}") else { throw Self.refusal("\"${{\" must be followed by \"}}\"") }
                flush()
                segments.append(try expression(String(rest[rest.index(rest.startIndex, offsetBy: 3)..<end.lowerBound])))
                rest = rest[end.upperBound...]
            } else if rest.hasPrefix("${") {
                guard let end = rest.firstIndex(of: "}") else { throw Self.refusal("\"${\" must be followed by \"}\"") }
                flush()
                segments.append(try named(String(rest[..<end].dropFirst(2))))
                rest = rest[rest.index(after: end)...]
            } else if rest.hasPrefix("$[") {
                guard let end = rest.firstIndex(of: "]"), let place = Int(rest[..<end].dropFirst(2)) else {
                    throw Self.refusal("\"$[\" must be followed by the number of a field and \"]\"")
                }
                guard place >= 1, place <= fields.count else {
                    throw Self.refusal("there is no field \(place); the first is 1, and the last is \(fields.count)")
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
            throw Self.refusal("there is no \"\(name.prefix(60))\"; the known names are: \(known.joined(separator: ", "))")
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
                    "\"\(text[bar...].prefix(60))\" is not a style; the known styles are: number(2), percent(1), currency(EUR), date(short), time(short), dateTime(medium)"
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

    /// A bar that is no `||`, and stands in no text.
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
        Refusal(.placeholderInvalid, "A placeholder of the notification's format is not valid: \(why).")
    }
}

extension StringProtocol {
    /// Where a text of ASCII first stands.
    fileprivate func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
