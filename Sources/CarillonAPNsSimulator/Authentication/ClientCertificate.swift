/// The facts that the simulator reads from a client certificate.
struct ClientCertificate: Hashable, Sendable {
    /// The APNs topics in the certificate's extension. A certificate without the extension is not valid for pushes.
    var topics: [String]
    var environments: Set<Environment>
    var validFrom: Timestamp
    var validUntil: Timestamp
    /// Whether the authority signed the certificate.
    var isTrusted: Bool

    /// Represents a certificate that cannot be decoded.
    static let unreadable = ClientCertificate(
        topics: [], environments: [], validFrom: Timestamp(milliseconds: 0), validUntil: Timestamp(milliseconds: 0),
        isTrusted: false)

    func isValid(at now: Timestamp) -> Bool {
        isTrusted && !topics.isEmpty && validFrom <= now && now <= validUntil
    }

    /// A universal certificate lists the app, VoIP and complications separately; the app's entry includes the newer suffixes.
    func allows(_ topic: String) -> Bool {
        if topics.contains(topic) { return true }
        switch PushType.suffix(of: topic) {
        case nil, ".voip", ".complication": return false
        default: return topics.contains(PushType.bundleID(of: topic))
        }
    }
}
