/// The owner of updates. A change of the owner removes the updates and the position of the former one. Its results and the names
/// of its finished updates stay.
struct UpdateOwner: Equatable, Sendable {
    var device: String
    /// Empty if the device has no user.
    var user: String
    var profile: String
}
