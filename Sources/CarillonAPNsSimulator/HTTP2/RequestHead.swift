import NIOHPACK

/// The header list of one request, checked as RFC 9113 section 8.3 asks.
struct RequestHead {
    var method: String
    var path: String
    var authority: String
    var fields: RequestFields
    /// How long its header block was on the wire.
    var blockBytes = 0

    /// Fails for what makes a request malformed: a missing or unknown pseudo-header, one after a field, capitals.
    init?(_ headers: HPACKHeaders) {
        var method: String?
        var path: String?
        var scheme: String?
        var authority = ""
        var fields = RequestFields()
        var isAfterPseudo = false
        for (name, value, _) in headers {
            if name.utf8.first == UInt8(ascii: ":") {
                guard !isAfterPseudo else { return nil }
                switch name {
                case ":method" where method == nil: method = value
                case ":path" where path == nil: path = value
                case ":scheme" where scheme == nil: scheme = value
                case ":authority": authority = value
                default: return nil
                }
                continue
            }
            isAfterPseudo = true
            guard fields.received(name, value) else { return nil }
        }
        guard let method, let path, !path.isEmpty, scheme != nil else { return nil }
        self.method = method
        self.path = path
        self.authority = authority
        self.fields = fields
    }
}
