/// A large field that few notifications have. It is stored outside of the structure, so that notifications without it are
/// small.
@propertyWrapper struct Rare<Value: Sendable>: Sendable {
    /// At most one value.
    private var values: [Value]

    init(wrappedValue: Value?) { values = wrappedValue.map { [$0] } ?? [] }

    var wrappedValue: Value? {
        get { values.first }
        set { values = newValue.map { [$0] } ?? [] }
    }
}
