import CarillonCore
import CarillonWire

extension VapidCredentials {
    /// Reads the VAPID credentials of a request. Returns nil if the request has no VAPID credentials: `Authorization` is absent
    /// or of another kind.
    ///
    /// - `vapid t=…, k=…`: RFC 8292 section 3. The parameters can be in either order, with or without a space. Others are
    ///   ignored.
    /// - `WebPush …` or `Bearer …` with `Crypto-Key: p256ecdsa=…`: the drafts before RFC 8292.
    init?(authorization: String?, cryptoKey: String?) throws(Refusal) {
        guard let authorization else { return nil }
        let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard let scheme = parts.first?.lowercased() else { return nil }
        let rest = parts.count == 2 ? parts[1] : ""
        switch scheme {
        case "vapid":
            let parameters = HeaderParameters(rest)
            guard let token = parameters["t"], let key = parameters["k"] else {
                throw Refusal(.vapidInvalid, "\"Authorization: vapid\" must have both t=<token> and k=<public key>.")
            }
            try self.init(token: token, key: key)
        case "webpush", "bearer":
            guard let key = cryptoKey.flatMap({ HeaderParameters($0)["p256ecdsa"] }) else {
                if scheme == "bearer" { return nil }
                throw Refusal(
                    .vapidInvalid, "\"Authorization: WebPush\" needs the public key in \"Crypto-Key: p256ecdsa=…\".")
            }
            try self.init(token: String(rest), key: key)
        default:
            return nil
        }
    }
}
