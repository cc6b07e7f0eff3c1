import CarillonBasics
package import CarillonWire
import Crypto

/// The collapse key of a firing. A new firing replaces the waiting firing of the same subscription with the same key.
package enum FiringCollapseKey {
    private static let plain = "fired"

    /// Returns nil if the firing replaces no other: each update of a `distinct` item is a separate event.
    ///
    /// Otherwise a firing replaces the firing with the same rendered `collapse` member. The key contains a hash of that member,
    /// because the member can be long.
    package static func text(of fired: FiredNotification, isDistinct: Bool) -> String? {
        guard !isDistinct else { return nil }
        guard case .string(let collapse)? = fired.notification["collapse"], !collapse.isEmpty else { return plain }
        return plain + " " + Base64URL.encode(Array(SHA256.hash(data: Array(collapse.utf8))).prefix(24))
    }
}
