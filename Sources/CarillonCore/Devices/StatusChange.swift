/// How the status of a device changed.
package enum StatusChange: Equatable, Sendable {
    case suspended
    case resumed
    /// The device stays suspended for another reason.
    case reasonChanged

    /// Returns nil if the status is the same.
    package init?(from former: DeviceStatus, to status: DeviceStatus) {
        switch (former, status) {
        case _ where former == status: return nil
        case (.registered, _): self = .suspended
        case (_, .registered): self = .resumed
        case (.suspended, .suspended): self = .reasonChanged
        }
    }
}
