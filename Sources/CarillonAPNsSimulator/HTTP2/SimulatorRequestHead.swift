import NIOHPACK

/// The header list of one request, checked as RFC 9113 section 8.3 asks.
struct SimulatorRequestHead {
    var method: String
    var path: String
    var authority: String
    var fields: RequestFields
    /// How long its header block was on the wire.
    var blockBytes = 0
    /// How long the list is, as RFC 9113 section 6.5.2 counts it.
    var listBytes = 0
    /// How long the body is said to be.
    var contentLength: Int?

    /// Fails for what makes a request malformed: a missing or unknown pseudo-header, one after a field, capitals, a length
    /// that is none.
    init?(_ headers: HPACKHeaders) {
        var method: String?
        var path: String?
        var scheme: String?
        var authority = ""
        var fields = RequestFields()
        var isAfterPseudo = false
        var listBytes = 0
        var contentLength: Int?
        for (name, value, _) in headers {
            listBytes += name.utf8.count + value.utf8.count + 32
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
            if name == "content-length" {
                guard let length = Self.length(value), contentLength ?? length == length else { return nil }
                contentLength = length
            }
        }
        guard let method, let path, !path.isEmpty, scheme != nil else { return nil }
        self.method = method
        self.path = path
        self.authority = authority
        self.fields = fields
        self.listBytes = listBytes
        self.contentLength = contentLength
    }

    /// Digits alone (RFC 9110 section 8.6).
    private static func length(_ text: String) -> Int? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(text) : nil
    }
}
