package import CarillonWire

/// The revisions of the last reports of a device about itself and its services, as the server has them. A device compares them to
/// notice that the server has other data. Nil if the device named no revision, or if the server has no report.
package struct ReportedRevisions: Equatable, Sendable {
    /// The revision of ``DeviceProfile``.
    package var device: String?
    /// The revision of ``ServiceProvider/Profile``.
    package var services: String?

    package init(device: String? = nil, services: String? = nil) {
        self.device = device
        self.services = services
    }

    package static let none = ReportedRevisions()
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
