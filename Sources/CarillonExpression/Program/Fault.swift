/// Why an evaluation has no value. It is as small as possible, because `&&` and `||` discard most faults.
struct Fault: Error {
    enum Reason: Error {
        case noOverload
        case unknownFunction
        case noSuchKey
        case indexOutOfRange
        case divisionByZero
        case overflow
        case badText
        case badPattern
        case badZone
        case unbound
        case badKey
        case repeatedKey
        /// The budget of the evaluation is used up. No operator suppresses this fault.
        case budget
        case tooDeep
        /// The constants belong to another shape.
        case wrongConstants
        /// The bindings belong to another environment.
        case foreignBindings
    }

    let reason: Reason
    /// The operation in which the fault occurred.
    let operation: Int32

    var isFinal: Bool { reason == .budget || reason == .tooDeep || reason == .wrongConstants || reason == .foreignBindings }
}

/// Why a condition has no value for the given bindings.
public struct ExpressionError: Error, Sendable, Hashable, CustomStringConvertible {
    public struct Code: Sendable, Hashable {
        public let name: String

        /// An operator or a function does not accept values of these types.
        public static let noOverload = Code(name: "no_such_overload")
        public static let noSuchKey = Code(name: "no_such_key")
        public static let indexOutOfRange = Code(name: "index_out_of_range")
        public static let divisionByZero = Code(name: "division_by_zero")
        /// A number, an instant or a duration is out of range.
        public static let overflow = Code(name: "overflow")
        /// A text cannot be converted to the type.
        public static let badText = Code(name: "invalid_text")
        public static let badPattern = Code(name: "invalid_pattern")
        public static let badZone = Code(name: "unknown_zone")
        /// A variable has no value.
        public static let unbound = Code(name: "unbound_variable")
        public static let badKey = Code(name: "invalid_key")
        public static let repeatedKey = Code(name: "repeated_key")
        /// The evaluation exceeded ``ExpressionLimits/cost`` or its own limit.
        public static let budget = Code(name: "budget_exceeded")
        /// Compared values are nested too deeply.
        public static let tooDeep = Code(name: "too_deep")
        /// The number of constants is not that of the shape.
        public static let wrongConstants = Code(name: "wrong_constants")
        /// The ``ExpressionBindings`` were made for other variables.
        public static let foreignBindings = Code(name: "foreign_bindings")
    }

    public let code: Code
    public let message: String
    /// The position in the text of the evaluated condition.
    public let position: ExpressionPosition

    public var description: String { "\(position.line):\(position.column): \(message)" }
}

extension ExpressionError {
    init(_ fault: Fault, in shape: Shape, _ source: String) {
        let operation = shape.operations[Int(fault.operation)]
        (code, message) =
            switch fault.reason {
            case .noOverload:
                (.noOverload, "no such overload: \(Self.name(of: operation)) does not take values of these types")
            case .unknownFunction: (.noOverload, "no such overload: \(Self.unknown(operation, in: shape))")
            case .noSuchKey: (.noSuchKey, "no such key\(Self.field(of: operation, in: shape))")
            case .indexOutOfRange: (.indexOutOfRange, "the index is out of range")
            case .divisionByZero: (.divisionByZero, "divide by zero")
            case .overflow: (.overflow, "overflow: the result of \(Self.name(of: operation)) is out of range")
            case .badText: (.badText, "the text cannot be converted by \(Self.name(of: operation))")
            case .badPattern: (.badPattern, "the pattern cannot be read")
            case .badZone: (.badZone, "there is no such time zone")
            case .unbound: (.unbound, "the variable has no value")
            case .badKey: (.badKey, "a key must be a bool, an int, a uint or a string")
            case .repeatedKey: (.repeatedKey, "the key appears twice in the map")
            case .budget: (.budget, "the evaluation exceeded its cost limit")
            case .wrongConstants: (.wrongConstants, "the constants belong to another shape")
            case .foreignBindings: (.foreignBindings, "the bindings belong to another environment")
            case .tooDeep: (.tooDeep, "the values are nested too deeply to be compared")
            }
        position = ExpressionPosition(utf8Offset: Int(shape.offsets[Int(fault.operation)]), in: source)
    }

    private static func unknown(_ operation: Operation, in shape: Shape) -> String {
        guard case .unknownFunction(let field) = operation else { return "" }
        return shape.fields[Int(field)]
    }

    private static func field(of operation: Operation, in shape: Shape) -> String {
        switch operation {
        case .select(_, let field), .presence(_, let field): ": \(shape.fields[Int(field)])"
        default: ""
        }
    }

    private static func name(of operation: Operation) -> String {
        switch operation {
        case .not: "!"
        case .negate, .subtract: "-"
        case .add: "+"
        case .multiply: "*"
        case .divide: "/"
        case .modulo: "%"
        case .equal: "=="
        case .unequal: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .more: ">"
        case .moreOrEqual: ">="
        case .contained: "in"
        case .index: "[ ]"
        case .all: "&&"
        case .any: "||"
        case .conditional: "?:"
        case .select, .presence: "a field's name"
        case .call(let function, _, _): function.rawValue + "()"
        case .matches: "matches()"
        case .fold: "a macro"
        default: "it"
        }
    }
}
