/// The names that conditions on items can use: the fields by their names or as `fields.price`, `previous.price`, `item`, and
/// `update.time`.
package enum ItemLanguage {
    /// Names that are not fields, even if an item has fields with these names. Such fields are written as `fields.item`.
    private static let own: [ExpressionEnvironment.Variable] = [
        .init("fields", .map(key: .string, value: .dynamic)), .init("previous", .map(key: .string, value: .dynamic)),
        .init("item", .string), .init("update.time", .timestamp),
    ]

    /// Returns the environment in which a condition over some fields is checked. With nil fields, it is the environment in
    /// which all conditions are evaluated: any name can be a field.
    ///
    /// - Parameter maxBytes: The largest lengths in bytes of texts in single fields, where they are below the general limit.
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
