/// The values of variables for evaluations. Make it once for an environment, and use it for all conditions of the
/// environment.
public struct ExpressionBindings: Sendable {
    var slots: [ExpressionValue?]
    var others: [String: ExpressionValue] = [:]
    private let places: [String: Int]

    public init(_ environment: ExpressionEnvironment) {
        slots = Array(repeating: nil, count: environment.variables.count)
        places = environment.slots
    }

    /// The value of a name, including its dots; nil for an unbound name. Only unchecked programs read a name that the
    /// environment does not declare.
    public subscript(name: String) -> ExpressionValue? {
        get { places[name].map { slots[$0] } ?? others[name] }
        set {
            if let slot = places[name] { slots[slot] = newValue } else { others[name] = newValue }
        }
    }

    /// The value of the variable at an index in ``ExpressionEnvironment/variables``.
    public subscript(slot slot: Int) -> ExpressionValue? {
        get { slots[slot] }
        set { slots[slot] = newValue }
    }
}
