import Foundation

/// The protocols of the store, as the sources of CarillonCore declare them, and their use in other sources.
struct StoreContract {
    /// A method or a property of a protocol. Methods that differ only in their types are one.
    struct Requirement: Hashable, CustomStringConvertible {
        var name: String
        /// Nil for a property.
        var labels: [String]?

        var description: String {
            guard let labels else { return name }
            return name + "(" + labels.map { $0 + ":" }.joined() + ")"
        }
    }

    /// By the name of the protocol.
    private(set) var requirements: [String: [Requirement]] = [:]
    /// The methods with a parameter that is a function, by the name of the protocol.
    private(set) var functionTakers: [String: [Requirement]] = [:]
    /// The names of function types.
    private(set) var functionTypes: Set<String> = []

    /// - Parameter sources: Swift files.
    init(_ sources: [String]) {
        let codes = sources.filter { $0.contains("protocol ") || $0.contains("typealias ") }.map(SwiftSource.code)
        for code in codes {
            let names = code.matches(of: #/\btypealias\s+(?<name>\w+)[^=\n]*=\s*(?<meaning>[^\n]*)/#)
            for match in names where match.meaning.contains("->") { functionTypes.insert(String(match.name)) }
        }
        for code in codes {
            for match in code.matches(of: #/\bprotocol\s+(?<name>\w+Store)\b[^{]*/#) {
                guard let body = SwiftSource.bracketed(code[match.range.upperBound...]) else { continue }
                requirements[String(match.name)] = []
                read(body, of: String(match.name))
            }
        }
    }

    private mutating func read(_ body: Substring, of name: String) {
        for match in body.matches(of: #/\bfunc\s+`?(?<name>\w+)`?[^(]*/#) {
            guard let list = SwiftSource.bracketed(body[match.range.upperBound...]) else { continue }
            let parameters = SwiftSource.parts(of: list, areTypes: true)
            let labels = parameters.map { parameter in
                String(parameter.drop(while: \.isWhitespace).prefix { $0.isLetter || $0.isNumber || $0 == "_" })
            }
            let method = Requirement(name: String(match.name), labels: labels)
            requirements[name, default: []].append(method)
            if parameters.contains(where: { isFunction($0) }) { functionTakers[name, default: []].append(method) }
        }
        for match in body.matches(of: #/\bvar\s+(?<name>\w+)/#) {
            requirements[name, default: []].append(Requirement(name: String(match.name), labels: nil))
        }
    }

    private func isFunction(_ parameter: Substring) -> Bool {
        parameter.contains("->") || parameter.matches(of: #/\w+/#).contains { functionTypes.contains(String($0.output)) }
    }

    // MARK: Calls

    /// A call of a method, or a use of a property, of a value named `store`.
    struct Call {
        var name: String
        var labels: [String]
        var hasTrailingClosure: Bool
    }

    /// The requirements of a protocol that no source uses.
    ///
    /// Methods of one name are notified apart by their labels. A method that is alone with its name may be called with any.
    func unused(of name: String, by calls: [Call]) -> [Requirement] {
        let calls = Dictionary(grouping: calls, by: \.name)
        let overloads = Dictionary(grouping: Set(requirements.values.joined()), by: \.name)
        return (requirements[name] ?? []).filter { requirement in
            let named = calls[requirement.name] ?? []
            guard let labels = requirement.labels, overloads[requirement.name]?.count != 1 else { return named.isEmpty }
            return !named.contains { call in
                call.labels == labels || (call.hasTrailingClosure && labels.starts(with: call.labels))
            }
        }
    }

    static func calls(in source: String) -> [Call] {
        let code = SwiftSource.code(source)
        return code.matches(of: #/\w*[sS]tore\s*[?!]?\.(?<name>\w+)\s*/#).map { match -> Call in
            var rest = code[match.range.upperBound...]
            var labels: [String] = []
            if rest.first == "(", let list = SwiftSource.bracketed(rest) {
                rest = code[list.endIndex...].dropFirst()
                labels = SwiftSource.parts(of: list, areTypes: false).map { argument in
                    argument.prefixMatch(of: #/\s*(?<label>\w+):/#).map { String($0.label) } ?? "_"
                }
            }
            let hasTrailingClosure = rest.drop(while: \.isWhitespace).first == "{"
            return Call(name: String(match.name), labels: labels, hasTrailingClosure: hasTrailingClosure)
        }
    }
}

extension StoreContract {
    /// The Swift files in a folder of the package.
    static func sources(in folder: URL) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }.map { path in
            try String(contentsOf: folder.appending(path: path), encoding: .utf8)
        }
    }
}
