/// An accepted condition. It can be evaluated any number of times, on any number of threads.
public struct ExpressionProgram: Sendable {
    /// The text of the condition.
    public let source: String
    public let environment: ExpressionEnvironment
    /// The type of the value; dynamic if it is known only during the evaluation.
    public let type: ExpressionType
    /// The least units of an evaluation, and the greatest for the declared sizes of variables.
    public let cost: ClosedRange<Int>
    /// The literals, in the order of the text. Conditions of the same ``shape`` differ only in these.
    public let constants: [ExpressionValue]
    let compiled: Shape
    let tree: SyntaxTree
    let places: [SyntaxTree.ID: Int]

    /// The number of names, constants, operators and calls of the condition.
    package var nodeCount: Int {
        func count(_ id: SyntaxTree.ID) -> Int { tree[id].form.children.reduce(1) { $0 + count($1) } }
        return count(tree.root)
    }

    /// Parses and checks a condition, and estimates its cost.
    ///
    /// - Throws: ``ExpressionRefusal`` with all problems of the condition.
    public init(_ source: String, in environment: ExpressionEnvironment) throws(ExpressionRefusal) {
        try self.init(source, in: environment, isChecked: true)
    }

    /// Parses a condition and checks its size, without a check of types and names. Invalid types and names, and invalid
    /// patterns, are errors of the evaluation.
    public static func unchecked(
        _ source: String, in environment: ExpressionEnvironment
    ) throws(ExpressionRefusal) -> ExpressionProgram {
        try ExpressionProgram(source, in: environment, isChecked: false)
    }

    private init(_ source: String, in environment: ExpressionEnvironment, isChecked: Bool) throws(ExpressionRefusal) {
        let tree: SyntaxTree
        do {
            tree = try Parser.parse(source, limits: environment.limits)
        } catch {
            throw ExpressionRefusal([error], in: source)
        }
        var types = Array(repeating: ExpressionType.dynamic, count: tree.nodes.count)
        if isChecked {
            do {
                types = try Checker.check(tree, in: environment)
            } catch {
                throw ExpressionRefusal(error.problems, in: source)
            }
        }
        let memberships = Memberships(of: tree, in: environment)
        let compiled = Compiler.compile(tree, memberships, in: environment)
        guard !isChecked || compiled.problems.isEmpty else { throw ExpressionRefusal(compiled.problems, in: source) }
        let cost = CostEstimate.of(tree, types: types, memberships, in: environment)
        guard !isChecked || cost.most <= environment.limits.cost else {
            let problem = Problem(
                .cost,
                "the condition can cost \(Self.text(cost.most)) units; the limit is \(environment.limits.cost)",
                at: tree[tree.root].offset)
            throw ExpressionRefusal([problem], in: source)
        }
        self.source = source
        self.environment = environment
        self.tree = tree
        self.compiled = compiled.shape
        constants = compiled.constants
        places = compiled.places
        type = types[tree.root]
        self.cost = min(cost.least, cost.most)...cost.most
    }

    /// The upper bound of ``cost``, for an error message.
    package var costText: String { Self.text(cost.upperBound) }

    private static func text(_ units: Int) -> String {
        units >= CostEstimate.unbounded ? "any number of" : String(units)
    }

    // MARK: Evaluation

    /// Returns the value for these bindings.
    ///
    /// - Throws: ``ExpressionError``. The evaluation never traps, and never exceeds the limits of its environment.
    public func value(_ bindings: borrowing ExpressionBindings) throws(ExpressionError) -> ExpressionValue {
        var units = Int.max
        return try value(bindings, spending: &units)
    }

    /// Returns the value for these bindings, within a number of units of cost. The used units are subtracted, also after an
    /// error.
    public func value(
        _ bindings: borrowing ExpressionBindings, spending units: inout Int
    ) throws(ExpressionError) -> ExpressionValue {
        var spent = 0
        defer { units -= spent }
        do {
            return try Evaluation.run(compiled, constants: constants, bindings, in: environment, limit: units) {
                evaluation throws(Fault) in
                defer { spent = evaluation.spent }
                return try evaluation.value(compiled.root)
            }
        } catch {
            throw ExpressionError(error, in: compiled, source)
        }
    }

    /// Whether the condition holds for these bindings. A value that is not a Boolean is an error. The compared values are not
    /// copied.
    ///
    /// - Parameters:
    ///   - bindings: The values of the variables.
    ///   - limit: Units of cost that the evaluation can use, in addition to the limit of the environment.
    public func holds(
        _ bindings: borrowing ExpressionBindings, limit: Int = .max
    ) throws(ExpressionError) -> Bool {
        do {
            return try compiled.holds(bindings, constants: constants, in: environment, limit: limit)
        } catch {
            throw ExpressionError(error, in: compiled, source)
        }
    }

    /// Whether the condition holds for these bindings; nil for an error. After an error it is faster than
    /// ``holds(_:limit:)``, which finds the error's position in the text.
    package func verdict(_ bindings: borrowing ExpressionBindings) -> Bool? {
        do {
            return try compiled.holds(bindings, constants: constants, in: environment, limit: .max)
        } catch {
            return nil
        }
    }

    /// The parts of the condition that conditions with other constants have in common.
    public var shape: ExpressionShape { ExpressionShape(compiled: compiled, environment: environment, source: source) }
}

/// A condition without its constants. A million conditions of one shape are compiled once: a row of a database contains
/// ``key`` and the constants.
public struct ExpressionShape: Sendable {
    let compiled: Shape
    let environment: ExpressionEnvironment
    let source: String

    /// A text that is equal for conditions of one shape in one environment.
    public var key: String { compiled.key }

    /// The number of constants of a condition with this shape.
    public var constantCount: Int { compiled.constants }

    /// Whether the condition with these constants holds. Their number and types must be those of a program of this shape.
    ///
    /// - Parameters:
    ///   - bindings: The values of the variables.
    ///   - constants: The condition's constants, in their order in its text.
    ///   - limit: Units of cost that the evaluation can use, in addition to the limit of the environment.
    /// - Throws: ``ExpressionError``. Its position refers to the text from which the shape was first made.
    public func holds(
        _ bindings: borrowing ExpressionBindings, constants: [ExpressionValue], limit: Int = .max
    ) throws(ExpressionError) -> Bool {
        do {
            return try compiled.holds(bindings, constants: constants, in: environment, limit: limit)
        } catch {
            throw ExpressionError(error, in: compiled, source)
        }
    }
}

extension Shape {
    fileprivate func holds(
        _ bindings: borrowing ExpressionBindings, constants: [ExpressionValue],
        in environment: borrowing ExpressionEnvironment, limit: Int
    ) throws(Fault) -> Bool {
        try Evaluation.run(self, constants: constants, bindings, in: environment, limit: limit) {
            evaluation throws(Fault) in try evaluation.truth(root)
        }
    }
}
