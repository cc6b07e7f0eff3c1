/// Why a request has no result: a fault of the library or the server, or an error of a service.
///
/// The handler of a provider throws an error of its service with ``init(number:_:details:)``; its ``domain`` is the service's id
/// then.
public struct ServiceError: Error, Hashable, Sendable {
    /// The codes of the library and the server. docs/coming-from-blackberry-dynamics.md lists them beside those of AppKinetics.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name in the protocol.
        public let name: String
        /// Makes a code with a name that is not listed here, as a later version may send.
        public init(_ name: String) { self.name = name }
        /// The name.
        public var description: String { name }

        /// An error of a service; ``ServiceError/number`` has its number.
        public static let custom = Code("custom")
        /// The provider failed without a more specific error.
        public static let serviceFailed = Code("service_failed")
        /// The provider was suspended by its system.
        public static let providerSuspended = Code("provider_suspended")
        /// No such provider exists that this device can call.
        public static let applicationNotFound = Code("application_not_found")
        /// The provider does not have the service.
        public static let serviceNotFound = Code("service_not_found")
        /// The provider does not have the version of the service.
        public static let serviceVersionNotFound = Code("service_version_not_found")
        /// The provider does not have the method.
        public static let serviceMethodNotFound = Code("service_method_not_found")
        /// The id or the version of a service is not valid; the text contains the position of the first invalid character.
        public static let serviceIDInvalid = Code("service_id_invalid")
        /// A value of the app is not valid; the text names the value and what is valid.
        public static let fieldInvalid = Code("field_invalid")
        /// The provider is locked by its user.
        public static let providerLocked = Code("provider_locked")
        /// This device cannot call other devices: it has no user, and the operator did not mark it as a backend device.
        public static let callForbidden = Code("call_forbidden")
        /// The parameters or the result are not valid for the service.
        public static let serviceParametersInvalid = Code("service_parameters_invalid")
        /// The provider is busy.
        public static let providerBusy = Code("provider_busy")
        /// The provider has no key with which requests can be sealed.
        public static let providerKeyMissing = Code("provider_key_missing")
        /// The provider has another key now.
        public static let providerKeyChanged = Code("provider_key_changed")
        /// The provider disabled the method.
        public static let methodDisabled = Code("method_disabled")
        /// The provider disabled the version.
        public static let versionDisabled = Code("version_disabled")
        /// The provider disabled the service.
        public static let serviceDisabled = Code("service_disabled")
        /// The user of a device changed. The provider belongs to another user now, the calling device has another user than when
        /// the app made the request, or the server rejected the user of the calling device.
        public static let userMismatch = Code("user_mismatch")
        /// The identity of the other device is not the accepted one: see ``ServiceClient/accept(_:fingerprint:)``.
        public static let identityChanged = Code("identity_changed")
        /// A message cannot be opened: it was changed, or was sealed for another device.
        public static let sealInvalid = Code("seal_invalid")
        /// The deadline of the request has passed.
        public static let deadlineExceeded = Code("deadline_exceeded")
        /// The parameters, the files or their number exceed the limits.
        public static let requestTooLarge = Code("request_too_large")
        /// The server does not know the request.
        public static let requestUnknown = Code("request_unknown")
        /// The request already has its result.
        public static let requestFinished = Code("request_finished")
        /// The request was delivered before it could be cancelled.
        public static let alreadyDelivered = Code("already_delivered")
        /// A file to be sent does not exist.
        public static let attachmentMissing = Code("attachment_missing")
        /// A file changed during two attempts to send it; nothing was sent.
        public static let attachmentChanged = Code("attachment_changed")
        /// A file exceeds the limit.
        public static let attachmentTooLarge = Code("attachment_too_large")
        /// A received file is not the file that was sent.
        public static let attachmentDamaged = Code("attachment_damaged")
        /// A file is not available any more.
        public static let attachmentGone = Code("attachment_gone")
        /// The name of a file is not valid on this device.
        public static let pathInvalid = Code("path_invalid")
        /// A quota is used up.
        public static let quotaExceeded = Code("quota_exceeded")
        /// The storage of this device could not be written until the deadline, because its disk is full or cannot be used.
        public static let storageUnavailable = Code("storage_unavailable")
        /// The request was cancelled.
        public static let cancelled = Code("cancelled")
        /// The server cannot be reached, or is not available now. If the server received the request, its result is in
        /// ``ServiceClient/replies`` later.
        public static let serverUnavailable = Code("server_unavailable")
    }

    /// The domain of faults of the library and the server.
    public static let libraryDomain = "carillon.services"

    /// ``libraryDomain``, or the id of the service that returned the error.
    public var domain: String
    /// The kind of the error.
    public var code: Code
    /// The service's own number of the error.
    public var number: Int?
    /// A sentence for people.
    public var text: String
    /// Additional values of the service.
    public var details: ServiceValue?

    /// Makes an error of the library.
    public init(_ code: Code, _ text: String = "") {
        domain = Self.libraryDomain
        self.code = code
        self.text = text
    }

    /// Makes an error of a service.
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
