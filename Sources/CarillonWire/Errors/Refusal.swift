/// The refusal of one request: an error code, and a sentence about the valid form.
package struct Refusal: Error, Equatable, Sendable {
    package var code: ErrorCode
    /// The fault, its place, and the valid form. Never contains a token, a key or a payload.
    package var detail: String
    /// The delay after which the same request can succeed, in seconds.
    package var retryAfterSeconds: Int?
    /// The error code that the approval hook of the app returned.
    package var appCode: String?

    package init(_ code: ErrorCode, _ detail: String, retryAfterSeconds: Int? = nil) {
        self.code = code
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }
}
