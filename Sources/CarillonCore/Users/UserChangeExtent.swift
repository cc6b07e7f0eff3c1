/// Whether data of a device ends when the device's user changes.
package enum UserChangeExtent: Sendable {
    /// The data belongs to the device, to the app or to others.
    case stays
    /// The data ends if it was made for the former user. Data that was made while the device had no user stays.
    case endsIfOfUser
    /// The data ends with every change, also when the device had no user before.
    case ends

    /// - Parameter isOfUser: Whether the data was made for the former user.
    package func ends(isOfUser: Bool) -> Bool {
        switch self {
        case .stays: false
        case .endsIfOfUser: isOfUser
        case .ends: true
        }
    }
}
