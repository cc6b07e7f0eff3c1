/// The owner of updates. With another owner, the updates and the position of the former one are removed; its results and the names of its
/// finished updates stay.
struct UpdateOwner: Equatable, Sendable {
    var device: String
    /// Empty of nobody.
    var user: String
    var profile: String
}
