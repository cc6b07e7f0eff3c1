/// A function of the language, with its overloads.
enum Function: String, CaseIterable {
    case size, contains, startsWith, endsWith, matches
    case type, dyn, bool, int, uint, double, string, bytes, timestamp, duration
    case getFullYear, getMonth, getDate, getDayOfMonth, getDayOfWeek, getDayOfYear
    case getHours, getMinutes, getSeconds, getMilliseconds
    case crosses, percentChange, within, version

    struct Overload {
        let isMethod: Bool
        let parameters: [ExpressionType]
        let result: ExpressionType

        init(_ parameters: [ExpressionType], _ result: ExpressionType, isMethod: Bool = false) {
            self.isMethod = isMethod
            self.parameters = parameters
            self.result = result
        }
    }

    /// The extension that enables the function; nil for a standard function.
    var `extension`: ExpressionExtension? { ExpressionExtension(rawValue: rawValue) }

    /// The overloads. Free types in them are found anew for each call.
    var overloads: [Overload] {
        switch self {
        case .size: both([.string, .bytes, .list(.free(0)), .map(key: .free(0), value: .free(1))].map { [$0] }, .int)
        case .contains, .startsWith, .endsWith: [Overload([.string, .string], .bool, isMethod: true)]
        case .matches: both([[.string, .string]], .bool)
        case .type: from([.free(0)], .type)
        case .dyn: from([.free(0)], .dynamic)
        case .bool: from([.bool, .string], .bool)
        case .int: from([.int, .uint, .double, .string, .timestamp, .duration], .int)
        case .uint: from([.uint, .int, .double, .string], .uint)
        case .double: from([.double, .int, .uint, .string], .double)
        case .string: from([.string, .bool, .int, .uint, .double, .bytes, .timestamp, .duration], .string)
        case .bytes: from([.bytes, .string], .bytes)
        case .timestamp: from([.timestamp, .string, .int], .timestamp)
        case .duration: from([.duration, .string], .duration)
        case .getFullYear, .getMonth, .getDate, .getDayOfMonth, .getDayOfWeek, .getDayOfYear: ofTimestamp
        case .getHours, .getMinutes, .getSeconds, .getMilliseconds:
            ofTimestamp + [Overload([.duration], .int, isMethod: true)]
        case .crosses: [Overload([.double, .double, .double], .bool)]
        case .percentChange: [Overload([.double, .double], .double)]
        case .within: [Overload([.map(key: .string, value: .dynamic), .double, .double, .double], .bool)]
        case .version: [Overload([.string], .bytes)]
        }
    }

    /// Whether the function accepts numbers of any type as doubles, as the extensions do.
    var widensNumbers: Bool { `extension` != nil }

    private var ofTimestamp: [Overload] {
        [Overload([.timestamp], .int, isMethod: true), Overload([.timestamp, .string], .int, isMethod: true)]
    }

    private func from(_ types: [ExpressionType], _ result: ExpressionType) -> [Overload] {
        types.map { Overload([$0], result) }
    }

    private func both(_ parameters: [[ExpressionType]], _ result: ExpressionType) -> [Overload] {
        parameters.flatMap { [Overload($0, result), Overload($0, result, isMethod: true)] }
    }
}

extension ExpressionEnvironment {
    /// Returns the function of a call. A dot before the name means the root namespace.
    func function(named name: String) -> Function? {
        guard let function = Function(rawValue: name.first == "." ? String(name.dropFirst()) : name) else { return nil }
        if let needed = function.extension, !extensions.contains(needed) { return nil }
        return function
    }

    /// Returns a sentence about an unknown function, with the most similar known name.
    func unknownFunction(_ name: String) -> String {
        if let needed = ExpressionExtension(rawValue: name) {
            return "the function \(name)() needs an extension that is not enabled here: \(needed.rawValue)"
        }
        if name == "has" || name == "existsOne" || SyntaxTree.Fold.Kind(rawValue: name) != nil {
            let form =
                switch name {
                case "has": "has(a.b)"
                case "bind": "cel.bind(x, value, …)"
                case "transformList", "transformMap": "list.\(name)(i, x, …)"
                default: "list.\(name)(x, …)"
                }
            return "\(name) must have the form \(form)"
        }
        let known = Function.allCases.filter { $0.extension.map(extensions.contains) ?? true }.map(\.rawValue)
        return "there is no function \(name)()" + nearest(to: name, among: known)
    }

    func unknownName(_ name: String) -> String {
        "there is no variable \(name)" + nearest(to: name, among: variables.map(\.name))
    }

    private func nearest(to name: String, among known: [String]) -> String {
        let name = String(name.prefix(64))
        let distances = known.map { ($0, distance(Array(name.lowercased().utf8), Array($0.lowercased().utf8))) }
        guard let (nearest, distance) = distances.min(by: { $0.1 < $1.1 }), distance <= max(1, name.utf8.count / 3) else {
            return ""
        }
        return "; did you mean \(nearest)?"
    }
}

/// Returns how many letters must be changed, added or removed to make one name from the other.
private func distance(_ one: [UInt8], _ other: [UInt8]) -> Int {
    var row = Array(0...other.count)
    for (place, letter) in one.enumerated() {
        var diagonal = row[0]
        row[0] = place + 1
        for (index, otherLetter) in other.enumerated() {
            let replaced = diagonal + (letter == otherLetter ? 0 : 1)
            diagonal = row[index + 1]
            row[index + 1] = min(replaced, row[index] + 1, row[index + 1] + 1)
        }
    }
    return row[other.count]
}
