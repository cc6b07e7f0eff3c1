/// The values of variables for evaluations. It is made once for an environment and used for all its conditions.
public struct ExpressionBindings: Sendable {
    var slots: [ExpressionValue?]
    var others: [String: ExpressionValue] = [:]
    private let places: [String: Int]

    public init(_ environment: ExpressionEnvironment) {
        slots = Array(repeating: nil, count: environment.variables.count)
        places = environment.slots
    }

    /// The value of a name, with all its dots; nil for one that is unbound. A name that the environment does not declare is seen by
    /// unchecked programs only.
    public subscript(name: String) -> ExpressionValue? {
        get { places[name].map { slots[$0] } ?? others[name] }
        set {
            if let slot = places[name] { slots[slot] = newValue } else { others[name] = newValue }
        }
    }

    /// The value by the place of its declaration.
    public subscript(slot slot: Int) -> ExpressionValue? {
        get { slots[slot] }
        set { slots[slot] = newValue }
    }
}
