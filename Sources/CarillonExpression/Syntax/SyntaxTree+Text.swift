extension SyntaxTree {
    /// Returns a part as the text of an equal condition, in a normal form.
    func text(_ id: ID) -> String {
        var text = ""
        write(id, into: &text, constants: \.literalText)
        return text
    }

    /// The whole condition, with a sign for the type of each constant. Conditions with the same key differ only in their
    /// constants.
    var shapeKey: String {
        var text = ""
        write(root, into: &text, constants: \.kind)
        return text
    }

    private func write(_ id: ID, into text: inout String, constants: (ExpressionValue) -> String) {
        if let value = constant(id) {
            text += constants(value)
            return
        }
        func part(_ id: ID) {
            let isSimple =
                switch self[id].form {
                case .unary, .binary, .all, .any, .conditional: false
                default: true
                }
            text += isSimple ? "" : "("
            write(id, into: &text, constants: constants)
            text += isSimple ? "" : ")"
        }
        func row(_ ids: [ID], _ separator: String = ", ") {
            for (index, id) in ids.enumerated() {
                text += index == 0 ? "" : separator
                if separator == ", " { write(id, into: &text, constants: constants) } else { part(id) }
            }
        }
        switch self[id].form {
        case .literal: break
        case .name(let name, let isRoot): text += (isRoot ? "." : "") + name
        case .select(let operand, let field):
            part(operand)
            text += "." + Self.fieldText(field)
        case .presence(let operand, let field):
            text += "has("
            part(operand)
            text += "." + Self.fieldText(field) + ")"
        case .index(let one, let other):
            part(one)
            text += "["
            write(other, into: &text, constants: constants)
            text += "]"
        case .unary(let sign, let operand):
            text += sign.rawValue
            let before = text.endIndex
            part(operand)
            // A sign, or a number after a sign, would be read as one literal.
            if let first = text.utf8[before...].first, first < UInt8(ascii: ":"), first != UInt8(ascii: "("),
                first != UInt8(ascii: "\"")
            {
                text.insert("(", at: before)
                text += ")"
            }
        case .binary(let sign, let one, let other): row([one, other], " \(sign.rawValue) ")
        case .all(let ids): row(ids, " && ")
        case .any(let ids): row(ids, " || ")
        case .conditional(let condition, let one, let other):
            part(condition)
            text += " ? "
            part(one)
            text += " : "
            part(other)
        case .call(let name, let target, var arguments):
            if let target {
                part(target)
                text += "."
            }
            text += name + "("
            // The pattern belongs to the program, so the key contains it unchanged.
            if name == "matches" || name == ".matches", let last = arguments.last,
                case .literal(.string(let pattern)) = self[last].form
            {
                arguments.removeLast()
                row(arguments)
                text += (arguments.isEmpty ? "" : ", ") + ExpressionValue.string(pattern).literalText
            } else {
                row(arguments)
            }
            text += ")"
        case .list(let ids):
            text += "["
            row(ids)
            text += "]"
        case .map(let entries):
            text += "{"
            for (index, entry) in entries.enumerated() {
                text += index == 0 ? "" : ", "
                write(entry.key, into: &text, constants: constants)
                text += ": "
                write(entry.value, into: &text, constants: constants)
            }
            text += "}"
        case .fold(let fold) where fold.kind == .bind:
            text += "cel.bind(\(fold.variable), "
            row([fold.range] + [fold.transform].compactMap(\.self))
            text += ")"
        case .fold(let fold):
            part(fold.range)
            text += ".\(fold.kind.rawValue)(\(fold.variable), " + (fold.second.map { $0 + ", " } ?? "")
            row([fold.predicate, fold.transform].compactMap(\.self))
            text += ")"
        }
    }

    private static func fieldText(_ field: String) -> String {
        let isName = field.utf8.allSatisfy { byte in ScalarSet.words.contains { $0.contains(UInt32(byte)) } }
        let isWritten = isName && field.utf8.first.map({ $0 < 0x30 || $0 > 0x39 }) == true
        return isWritten && !Parser.literals.contains(field) ? field : "`\(field)`"
    }
}

extension ExpressionValue {
    /// The value as written in a condition. A value without a literal is written as a call of the function that makes it.
    public var literalText: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .int(let number): String(number)
        case .uint(let number): "\(number)u"
        case .double(let number) where number.isFinite: number.description
        case .double(let number): "double(\"\(number)\")"
        case .string(let text): Self.quoted(text)
        case .bytes(let bytes): "b\"" + bytes.map(Self.escaped).joined() + "\""
        case .list(let elements): "[" + elements.map(\.literalText).joined(separator: ", ") + "]"
        case .map(let map):
            "{" + map.entries.map { "\($0.key.literalText): \($0.value.literalText)" }.joined(separator: ", ") + "}"
        case .timestamp(let instant): "timestamp(\"\(instant)\")"
        case .duration(let span): "duration(\"\(span)\")"
        case .type(let type): type.name
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\" + String(scalar)
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                quoted += "\\x" + String(scalar.value + 0x100, radix: 16).dropFirst()
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }

    private static func escaped(_ byte: UInt8) -> String {
        byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            ? String(Character(Unicode.Scalar(byte))) : "\\x" + String(UInt(byte) + 0x100, radix: 16).dropFirst()
    }

    /// The type with the types of a list's elements, each named once. The checker uses only these facts about a constant.
    fileprivate var kind: String {
        guard case .list(let elements) = self else { return "$" + type.name }
        return "$list(" + Set(elements.map(\.kind)).sorted().joined(separator: "|") + ")"
    }
}
