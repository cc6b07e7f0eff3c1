/// What conditions on items can speak of: the fields by their names or as `fields.price`, `previous.price`, `item`, and `update.time`.
package enum ItemLanguage {
    /// Names that are no fields, whatever fields there are; those are reached as `fields.item`.
    private static let own: [ExpressionEnvironment.Variable] = [
        .init("fields", .map(key: .string, value: .dynamic)), .init("previous", .map(key: .string, value: .dynamic)),
        .init("item", .string), .init("update.time", .timestamp),
    ]

    /// In which a condition over some fields is checked; nil fields are those in which all are evaluated: any name may be a field's.
    ///
    /// - Parameter maxBytes: Of texts in fields, where less is known than of all.
    package static func environment(
        over fields: [String: ExpressionType]?, maxBytes: [String: Int] = [:], limits: ExpressionLimits = .init(),
        zoneOffset: @escaping @Sendable (String, ExpressionTimestamp) -> Int?
    ) -> ExpressionEnvironment {
        let names = (fields ?? [:]).filter { field in !own.contains { $0.name == field.key } }
        let variables = names.sorted { $0.key < $1.key }.map { name, type in
            ExpressionEnvironment.Variable(name, type, maximumBytes: maxBytes[name])
        }
        return ExpressionEnvironment(
            own + variables, extensions: Set(ExpressionExtension.allCases), limits: limits, zoneOffset: zoneOffset)
    }
}
