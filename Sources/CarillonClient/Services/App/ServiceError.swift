/// Why a request has no result: the library's and the server's own faults, and those of a service.
///
/// The provider's handler throws one of its service with ``init(number:_:details:)``; its ``domain`` is the service's id then.
public struct ServiceError: Error, Hashable, Sendable {
    /// The names of what the library and the server say; docs/coming-from-blackberry-dynamics.md has them beside AppKinetics' own.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name as it travels.
        public let name: String
        /// For a name that is not listed here, as a later version may send.
        public init(_ name: String) { self.name = name }
        /// The name.
        public var description: String { name }

        /// Of a service: ``ServiceError/number`` says which.
        public static let custom = Code("custom")
        /// The provider failed, and did not say how.
        public static let serviceFailed = Code("service_failed")
        /// The provider was suspended by its system.
        public static let providerSuspended = Code("provider_suspended")
        /// There is no such provider that this device may call.
        public static let applicationNotFound = Code("application_not_found")
        /// The provider does not have the service.
        public static let serviceNotFound = Code("service_not_found")
        /// The provider does not have the version of the service.
        public static let serviceVersionNotFound = Code("service_version_not_found")
        /// The provider does not have the method.
        public static let serviceMethodNotFound = Code("service_method_not_found")
        /// The id or the version of a service is not valid; the text says at which character.
        public static let serviceIDInvalid = Code("service_id_invalid")
        /// A value that the app gives is not valid; the text names the value and what is valid.
        public static let fieldInvalid = Code("field_invalid")
        /// The provider is locked by its user.
        public static let providerLocked = Code("provider_locked")
        /// This device may call nobody: it belongs to no user, and the operator did not make it a server.
        public static let callForbidden = Code("call_forbidden")
        /// Parameters or a result that a service cannot have.
        public static let serviceParametersInvalid = Code("service_parameters_invalid")
        /// The provider has too much to do.
        public static let providerBusy = Code("provider_busy")
        /// The provider has no key to seal with.
        public static let providerKeyMissing = Code("provider_key_missing")
        /// The provider has another key by now.
        public static let providerKeyChanged = Code("provider_key_changed")
        /// The provider switched the method off.
        public static let methodDisabled = Code("method_disabled")
        /// The provider switched the version off.
        public static let versionDisabled = Code("version_disabled")
        /// The provider switched the service off.
        public static let serviceDisabled = Code("service_disabled")
        /// The provider belongs to another user by now; or the device that asks belongs to another user than the one for whom the app
        /// asked, or the server refused that user.
        public static let userMismatch = Code("user_mismatch")
        /// The other's identity is not the one that was accepted: see ``ServiceClient/accept(_:fingerprint:)``.
        public static let identityChanged = Code("identity_changed")
        /// What came cannot be opened: it was changed, or is somebody else's.
        public static let sealInvalid = Code("seal_invalid")
        /// The request's time is over.
        public static let deadlineExceeded = Code("deadline_exceeded")
        /// Parameters, files or their number are beyond the limits.
        public static let requestTooLarge = Code("request_too_large")
        /// The server does not know the request.
        public static let requestUnknown = Code("request_unknown")
        /// The request has its result.
        public static let requestFinished = Code("request_finished")
        /// It was delivered before it could be cancelled.
        public static let alreadyDelivered = Code("already_delivered")
        /// A file that should be sent is not there.
        public static let attachmentMissing = Code("attachment_missing")
        /// A file changed twice while it was read to be sent; nothing was sent.
        public static let attachmentChanged = Code("attachment_changed")
        /// A file is beyond the limit.
        public static let attachmentTooLarge = Code("attachment_too_large")
        /// A file that came is not what was sent.
        public static let attachmentDamaged = Code("attachment_damaged")
        /// A file is not to be had any more.
        public static let attachmentGone = Code("attachment_gone")
        /// The name of a file is not one that can be given to it here.
        public static let pathInvalid = Code("path_invalid")
        /// An allowance is used up.
        public static let quotaExceeded = Code("quota_exceeded")
        /// The storage of this device could not be written until the deadline: its disk is full, or cannot be used.
        public static let storageUnavailable = Code("storage_unavailable")
        /// The request was cancelled.
        public static let cancelled = Code("cancelled")
        /// The server cannot be reached, or cannot serve now; a request that it may have is in ``ServiceClient/replies`` later.
        public static let serverUnavailable = Code("server_unavailable")
    }

    /// Of faults of the library and the server.
    public static let libraryDomain = "carillon.services"

    /// ``libraryDomain``, or the id of the service whose error it is.
    public var domain: String
    /// What it is.
    public var code: Code
    /// The service's own number of it.
    public var number: Int?
    /// For people.
    public var text: String
    /// What the service says beside.
    public var details: ServiceValue?

    /// One of the library's.
    public init(_ code: Code, _ text: String = "") {
        domain = Self.libraryDomain
        self.code = code
        self.text = text
    }

    /// One of a service.
    public init(number: Int, _ text: String, details: ServiceValue? = nil) {
        domain = ""
        code = .custom
        self.number = number
        self.text = text
        self.details = details
    }
}

extension ServiceError: CustomStringConvertible {
    /// The domain, the code and the text.
    public var description: String { "\(domain) \(number.map(String.init) ?? code.name): \(text)" }
}
