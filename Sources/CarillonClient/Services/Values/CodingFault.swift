/// Describes, for people, why a value cannot be encoded or decoded.
enum CodingFault {
    /// Returns a clause that names the member.
    static func clause(of error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, let context):
            "the member \(place(context.codingPath + [key])) is missing"
        case DecodingError.typeMismatch(let type, let context):
            "\(member(context.codingPath)) is not of the type \(type)"
        case DecodingError.valueNotFound(let type, let context):
            "\(member(context.codingPath)) is null in place of a value of the type \(type)"
        case DecodingError.dataCorrupted(let context): "\(member(context.codingPath)) cannot be read"
        case EncodingError.invalidValue(_, let context): "\(member(context.codingPath)) has a value that JSON does not have"
        default: "it has a type that is not supported"
        }
    }

    private static func member(_ path: [any CodingKey]) -> String {
        path.allSatisfy { $0.intValue != nil } ? "it" : "the member \(place(path))"
    }

    /// Returns the names of members and the numbers of elements, without the array around the value.
    private static func place(_ path: [any CodingKey]) -> String {
        let names = path.enumerated().filter { $0.offset > 0 || $0.element.intValue == nil }
            .map { $0.element.intValue.map { String($0) } ?? $0.element.stringValue }
        return "\"\(names.joined(separator: "."))\""
    }
}
