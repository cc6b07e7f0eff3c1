/// What a Live Activity's notification holds beyond the rest of `aps`.
struct ActivityFields: Hashable, Sendable {
    enum Event: String, Hashable, Sendable {
        case start, update, end
    }

    /// How the started activity takes its updates.
    enum Input: Hashable, Sendable {
        case token
        case channel(String)
    }

    var event: Event
    var timestamp: Int64
    var contentState: JSONFragment?
    var attributesType: String?
    var attributes: JSONFragment?
    var staleDate: Int64?
    var dismissalDate: Int64?
    var input: Input?
}
