/// A condition that was accepted, ready to be evaluated any number of times, on any number of threads.
public struct ExpressionProgram: Sendable {
    /// Its text.
    public let source: String
    public let environment: ExpressionEnvironment
    /// What its value will be; dynamic where that is known only when it is evaluated.
    public let type: ExpressionType
    /// Units that an evaluation takes at least and, as far as the sizes of variables are declared, at most.
    public let cost: ClosedRange<Int>
    /// The literals, in the order of the text: a condition of the same ``shape`` differs in these only.
    public let constants: [ExpressionValue]
    let compiled: Shape
    let tree: SyntaxTree
    let places: [SyntaxTree.ID: Int]

    /// The number of names, constants, operators and calls that it is made of.
    package var nodeCount: Int {
        func count(_ id: SyntaxTree.ID) -> Int { tree[id].form.children.reduce(1) { $0 + count($1) } }
        return count(tree.root)
    }

    /// Reads, checks and bounds a condition.
    ///
    /// - Throws: ``ExpressionRefusal`` with everything that is wrong with it.
    public init(_ source: String, in environment: ExpressionEnvironment) throws(ExpressionRefusal) {
        try self.init(source, in: environment, isChecked: true)
    }

    /// Reads and bounds a condition, and leaves types and names to the evaluation, where what cannot be is an error of the part it
    /// stands in. A pattern that cannot be read is one as well.
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

    /// The upper bound of ``cost``, for a message.
    package var costText: String { Self.text(cost.upperBound) }

    private static func text(_ units: Int) -> String {
        units >= CostEstimate.unbounded ? "any number of" : String(units)
    }

    // MARK: Evaluation

    /// The value for these bindings.
    ///
    /// - Throws: ``ExpressionError``. It never traps, and never takes more than the limits of its environment allow.
    public func value(_ bindings: borrowing ExpressionBindings) throws(ExpressionError) -> ExpressionValue {
        var units = Int.max
        return try value(bindings, spending: &units)
    }

    /// The same within some units of cost. What the evaluation took is subtracted from these, also when it fails.
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

    /// Whether it holds for these bindings: a value that is no Boolean is an error. It makes no copy of what it compares.
    ///
    /// - Parameters:
    ///   - bindings: The values of the variables.
    ///   - limit: Units of cost that the evaluation may take, beside the limit of the environment.
    public func holds(
        _ bindings: borrowing ExpressionBindings, limit: Int = .max
    ) throws(ExpressionError) -> Bool {
        do {
            return try compiled.holds(bindings, constants: constants, in: environment, limit: limit)
        } catch {
            throw ExpressionError(error, in: compiled, source)
        }
    }

    /// Whether it holds for these bindings; nil where that is an error. It takes less time then than ``holds(_:limit:)``, which finds the place of the
    /// error in the text.
    package func verdict(_ bindings: borrowing ExpressionBindings) -> Bool? {
        do {
            return try compiled.holds(bindings, constants: constants, in: environment, limit: .max)
        } catch {
            return nil
        }
    }

    /// What it has in common with conditions that differ in constants only.
    public var shape: ExpressionShape { ExpressionShape(compiled: compiled, environment: environment, source: source) }
}

/// A condition without its constants. A million of one shape are compiled once: a row of a database holds ``key`` and the constants.
public struct ExpressionShape: Sendable {
    let compiled: Shape
    let environment: ExpressionEnvironment
    let source: String

    /// Equal for conditions of one shape in one environment.
    public var key: String { compiled.key }

    /// How many constants a condition of it has.
    public var constantCount: Int { compiled.constants }

    /// Whether the condition with these constants holds, which are as many and of the same types as those of a program of this shape.
    ///
    /// - Parameters:
    ///   - bindings: The values of the variables.
    ///   - constants: The condition's constants, in their order in its text.
    ///   - limit: Units of cost that the evaluation may take, beside the limit of the environment.
    /// - Throws: ``ExpressionError``, whose position is one in the text that the shape was first made of.
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
