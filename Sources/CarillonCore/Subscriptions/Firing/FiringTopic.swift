import CarillonBasics
package import CarillonWire
import Crypto

/// Decides which waiting firing of the same subscription a new firing replaces: the one with the same topic.
package enum FiringTopic {
    private static let plain = "fired"

    /// Nil when the firing replaces nothing: each update of a distinct item is an event of its own.
    ///
    /// Otherwise a firing replaces the one with the same rendered `collapse`, which the topic has as a hash, as it may be long.
    package static func text(of fired: FiredNotification, isDistinct: Bool) -> String? {
        guard !isDistinct else { return nil }
        guard case .string(let collapse)? = fired.notification["collapse"], !collapse.isEmpty else { return plain }
        return plain + " " + Base64URL.encode(Array(SHA256.hash(data: Array(collapse.utf8))).prefix(24))
    }
}
