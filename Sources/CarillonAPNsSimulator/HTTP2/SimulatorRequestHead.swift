import NIOHPACK

/// The header list of one request, checked as RFC 9113 section 8.3 requires.
struct SimulatorRequestHead {
    var method: String
    var path: String
    var authority: String
    var fields: RequestFields
    /// The length of the header block in the frames.
    var blockBytes = 0
    /// The length of the list, counted as in RFC 9113 section 6.5.2.
    var listBytes = 0
    /// The content length of the request; nil if the request has no content length.
    var contentLength: Int?

    /// Returns nil for a malformed request: a missing or unknown pseudo-header, a pseudo-header after a field, capitals, or
    /// an invalid length.
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

    /// Reads a length, which has only digits (RFC 9110 section 8.6).
    private static func length(_ text: String) -> Int? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(text) : nil
    }
}
