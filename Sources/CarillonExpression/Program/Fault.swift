/// Why an evaluation gives no value, as small as it can be: `&&` and `||` throw most of them away.
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
        /// What a host allows is used up. No operator absorbs it.
        case budget
        case tooDeep
        /// Those of another shape.
        case wrongConstants
        /// Those of another environment.
        case foreignBindings
    }

    let reason: Reason
    /// The operation it happened in.
    let operation: Int32

    var isFinal: Bool { reason == .budget || reason == .tooDeep || reason == .wrongConstants || reason == .foreignBindings }
}

/// Why a condition has no value for the bindings it was evaluated with.
public struct ExpressionError: Error, Sendable, Hashable, CustomStringConvertible {
    public struct Code: Sendable, Hashable {
        public let name: String

        /// An operator or a function does not take values of these types.
        public static let noOverload = Code(name: "no_such_overload")
        public static let noSuchKey = Code(name: "no_such_key")
        public static let indexOutOfRange = Code(name: "index_out_of_range")
        public static let divisionByZero = Code(name: "division_by_zero")
        /// A number, an instant or a duration out of its range.
        public static let overflow = Code(name: "overflow")
        /// A text that is not what it is to be converted to.
        public static let badText = Code(name: "invalid_text")
        public static let badPattern = Code(name: "invalid_pattern")
        public static let badZone = Code(name: "unknown_zone")
        /// A variable without a value.
        public static let unbound = Code(name: "unbound_variable")
        public static let badKey = Code(name: "invalid_key")
        public static let repeatedKey = Code(name: "repeated_key")
        /// It took more than ``ExpressionLimits/cost``, or than the limit of the evaluation.
        public static let budget = Code(name: "budget_exceeded")
        /// A value lies deeper in others than is compared.
        public static let tooDeep = Code(name: "too_deep")
        /// Constants that are not as many as the shape has.
        public static let wrongConstants = Code(name: "wrong_constants")
        /// ``ExpressionBindings`` were made for other variables.
        public static let foreignBindings = Code(name: "foreign_bindings")
    }

    public let code: Code
    public let message: String
    /// In the text of the condition whose program was evaluated.
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
