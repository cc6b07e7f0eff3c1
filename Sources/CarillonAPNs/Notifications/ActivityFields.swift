/// The fields of a Live Activity's notification beyond the other members of `aps`.
struct ActivityFields: Hashable, Sendable {
    enum Event: String, Hashable, Sendable {
        case start, update, end
    }

    /// How the started activity receives its updates.
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
