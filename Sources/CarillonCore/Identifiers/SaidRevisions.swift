package import CarillonWire

/// The names that a device gave to what it said last of itself and of its services, as the server has them: by these a device notices that
/// the server has something else. Nil where nothing was named, or where the server has nothing.
package struct SaidRevisions: Equatable, Sendable {
    /// Of ``DeviceProfile``.
    package var device: String?
    /// Of ``ServiceProvider/Profile``.
    package var services: String?

    package init(device: String? = nil, services: String? = nil) {
        self.device = device
        self.services = services
    }

    package static let none = SaidRevisions()
    package static let longestBytes = 64

    /// Checks the name of a revision.
    package static func check(_ revision: String?) throws(Refusal) {
        guard let revision else { return }
        guard (1...longestBytes).contains(revision.utf8.count), revision.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw Refusal(.fieldInvalid, "\"revision\" must have 1 to \(longestBytes) printable ASCII characters.")
        }
    }
}
