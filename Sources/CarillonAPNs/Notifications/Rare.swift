/// A field that few notifications have, and that is large: it stands elsewhere, so that the others are not larger for it.
@propertyWrapper struct Rare<Value: Sendable>: Sendable {
    /// One value at most.
    private var values: [Value]

    init(wrappedValue: Value?) { values = wrappedValue.map { [$0] } ?? [] }

    var wrappedValue: Value? {
        get { values.first }
        set { values = newValue.map { [$0] } ?? [] }
    }
}
