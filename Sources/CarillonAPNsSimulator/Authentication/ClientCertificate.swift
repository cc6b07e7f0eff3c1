/// What the service reads in a client certificate.
struct ClientCertificate: Hashable, Sendable {
    /// From the extension for topics; a certificate without one is not for pushes.
    var topics: [String]
    var environments: Set<Environment>
    /// Signed by the authority, a push certificate, and neither early nor late.
    var validFrom: Timestamp
    var validUntil: Timestamp
    var isTrusted: Bool

    /// What stands for a certificate that cannot be read.
    static let unreadable = ClientCertificate(
        topics: [], environments: [], validFrom: Timestamp(milliseconds: 0), validUntil: Timestamp(milliseconds: 0),
        isTrusted: false)

    func isValid(at now: Timestamp) -> Bool {
        isTrusted && !topics.isEmpty && validFrom <= now && now <= validUntil
    }

    /// A universal certificate lists the app, VoIP and complications one by one; the newer suffixes follow the app.
    func allows(_ topic: String) -> Bool {
        if topics.contains(topic) { return true }
        switch PushType.suffix(of: topic) {
        case nil, ".voip", ".complication": return false
        default: return topics.contains(PushType.bundleID(of: topic))
        }
    }
}
