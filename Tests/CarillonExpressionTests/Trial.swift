import CarillonExpression

/// The result of an expression as text: its value as a literal, or the code of its error.
enum Trial {
    static let zones: @Sendable (String, ExpressionTimestamp) -> Int? = { name, instant in
        // As it has been since 1996.
        name == "Europe/Berlin" ? (instant.seconds % 31_556_952 > 15_778_476 ? 3600 : 7200) : nil
    }

    static func unchecked(
        _ source: String, _ variables: [String: ExpressionValue] = [:], container: String = "",
        extensions: Set<ExpressionExtension> = [], limits: ExpressionLimits = .init()
    ) -> String {
        let environment = ExpressionEnvironment(
            container: container, extensions: extensions, limits: limits, zoneOffset: zones)
        var bindings = ExpressionBindings(environment)
        for (name, value) in variables { bindings[name] = value }
        do {
            return try ExpressionProgram.unchecked(source, in: environment).value(bindings).literalText
        } catch let refusal as ExpressionRefusal {
            return "refused: \(refusal.problems[0].code.name)"
        } catch {
            return "error: \((error as? ExpressionError)?.code.name ?? "\(error)")"
        }
    }

    /// The result of the checker: a type, or the codes of all problems.
    static func check(
        _ source: String, _ variables: [ExpressionEnvironment.Variable] = [], extensions: Set<ExpressionExtension> = [],
        container: String = "", limits: ExpressionLimits = .init()
    ) -> String {
        let environment = ExpressionEnvironment(variables, container: container, extensions: extensions, limits: limits)
        do {
            return try ExpressionProgram(source, in: environment).type.description
        } catch {
            return "refused: " + error.problems.map(\.code.name).joined(separator: ", ")
        }
    }
}

extension ExpressionValue {
    static func map(_ entries: [String: ExpressionValue]) -> ExpressionValue {
        var map = ExpressionMap()
        for (key, value) in entries.sorted(by: { $0.key < $1.key }) { _ = map.insert(value, for: .string(key)) }
        return .map(map)
    }
}
