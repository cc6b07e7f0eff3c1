extension SealedPayload {
    /// Whether a reply shows that its provider received the whole request.
    var impliesReceipt: Bool {
        switch content {
        case .value, .attached: true
        case .error(let error): error.impliesReceipt
        }
    }
}

extension ServiceError {
    /// Whether only a handler, which received the whole request, can end it with this error. The other codes are those of a
    /// provider's library that rejects a request, or cannot open or fetch it.
    var impliesReceipt: Bool {
        domain != Self.libraryDomain || [.custom, .serviceFailed, .providerLocked].contains(code)
    }
}
