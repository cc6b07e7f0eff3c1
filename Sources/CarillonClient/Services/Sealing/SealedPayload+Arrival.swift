extension SealedPayload {
    /// Whether a reply shows that its provider had all of the request.
    var saysThatRequestArrived: Bool {
        switch content {
        case .value, .attached: true
        case .error(let error): error.saysThatRequestArrived
        }
    }
}

extension ServiceError {
    /// Whether only a handler that had all of the request ends it with this error. The other codes are those of a provider's library that
    /// refuses a request, or cannot open or fetch it.
    var saysThatRequestArrived: Bool {
        domain != Self.libraryDomain || [.custom, .serviceFailed, .providerLocked].contains(code)
    }
}
